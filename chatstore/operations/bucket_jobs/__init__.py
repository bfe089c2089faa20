"""Maintenance jobs over tables and buckets."""
