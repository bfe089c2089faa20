"""Purges, holds, undo and erasure, the audit log, and the pages and tasks of moderators.

Everything that deletes or rewrites messages is an operation in this app; `chatstore` does not import it.
"""
