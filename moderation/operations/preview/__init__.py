"""The preview of a purge: its scan, manifest, samples and exclusions."""
