"""Lookup of messages, channels, users and purges."""
