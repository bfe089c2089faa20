"""Reads of pages of a channel, across its buckets."""
