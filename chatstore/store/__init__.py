"""The only modules that access Cassandra and Redis; one per table or concern.

They return domain values, never driver rows, and raise our errors instead of the driver's.
"""
