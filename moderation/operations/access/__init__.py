"""Rights, and the audit log."""
