"""Moderation's rows in Postgres: purges, their manifests and steps, the audit."""

from moderation.models.audit import AuditEntry
from moderation.models.purges import ManifestBucket, Purge, Step, Undo

__all__ = ["AuditEntry", "ManifestBucket", "Purge", "Step", "Undo"]
