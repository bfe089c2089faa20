"""History of a bucket, and the actions on it."""
