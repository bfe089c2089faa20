"""Selections: parsing, scope and summary."""
