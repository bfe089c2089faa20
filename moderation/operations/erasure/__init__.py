"""Erasure: requests, and deletion of what was kept for undo."""
