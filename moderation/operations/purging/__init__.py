"""Purges from confirmation to completion."""
