"""Start and stop real servers on this machine: Cassandra, Postgres, Valkey, the web.

This package deals only with processes and files; it imports no Django and no driver (`logins.py` runs as a process of
its own).
"""
