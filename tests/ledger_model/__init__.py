"""The reader never skips a live message: checked in a model, and on real servers."""
