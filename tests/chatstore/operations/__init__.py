"""The use cases of the store, on the real servers."""
