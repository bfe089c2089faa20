"""Checks of jobs, beat and nodes, and the console of maintenance."""
