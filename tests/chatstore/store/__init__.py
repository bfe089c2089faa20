"""The modules that talk to Cassandra and Redis, on the real servers."""
