"""Formats of the languages, in place of Django's own."""
