"""The ledger of buckets, and the log of deletes that have to be repaired."""
