"""The time since each table was repaired, and what depends on it."""
