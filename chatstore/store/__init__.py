"""The only speakers of Cassandra and Redis; one module per table or concern.

What leaves is a domain value, never a driver row; a driver's error leaves as ours.
"""
