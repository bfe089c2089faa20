"""What was done to a bucket, and what can be done."""
