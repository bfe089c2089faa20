"""The speakers of Cassandra and Redis, on the real servers."""
