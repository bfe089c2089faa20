"""Clocks, locks, leases and write timestamps, shared by all processes."""
