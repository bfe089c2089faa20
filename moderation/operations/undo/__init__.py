"""Undo: requests, restores and expiry."""
