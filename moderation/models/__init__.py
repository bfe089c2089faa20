"""Moderation tables in Postgres: purges, their manifests and steps, holds, erasures, the audit log."""

from moderation.models.audit import AuditEntry
from moderation.models.erasures import Erasure
from moderation.models.holds import Hold
from moderation.models.purges import ManifestBucket, Purge, Step, Undo

__all__ = ["AuditEntry", "Erasure", "Hold", "ManifestBucket", "Purge", "Step", "Undo"]
