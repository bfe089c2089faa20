"""Maintenance jobs: their definitions, schedules and runs."""
