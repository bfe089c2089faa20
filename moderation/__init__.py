"""Moderators and their work: purges, audit, their pages and tasks.

Whatever removes or rewrites messages is an operation in here; chatstore knows nothing of it.
"""
