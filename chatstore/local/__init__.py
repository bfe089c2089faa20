"""Starts and stops real servers on this machine: Cassandra, Postgres, Valkey, the web.

Only what deals with processes and files enters; no Django, no driver of a store (`logins.py` is a process of its own).
"""
