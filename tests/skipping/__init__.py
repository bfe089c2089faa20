"""What the reader skips never hides a live message: a model of it, and the same on real servers."""
