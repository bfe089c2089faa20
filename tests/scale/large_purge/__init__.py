"""`python -m tests.scale.large_purge`: a purge of 10,000,000 messages in 50,000 channels, and its undo."""
