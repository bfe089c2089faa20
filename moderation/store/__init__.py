"""Moderation's own Cassandra tables and statements: the quarantine and the deletes.

Sessions, prepared statements and errors come from chatstore.store.
"""
