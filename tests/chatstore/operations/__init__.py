"""The store's use cases, on the real servers."""
