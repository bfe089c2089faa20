"""Moderation tables in Postgres: purges, scans, steps, undos, holds, erasures, notes, settings, the audit log."""

from moderation.models.audit import AuditEntry, AuditLink, UnlinkedEntry
from moderation.models.erasures import Erasure
from moderation.models.holds import Hold
from moderation.models.identities import StaffIdentity
from moderation.models.invitations import Invitation
from moderation.models.limits import PurgeApproval, PurgeLimits
from moderation.models.notes import Note
from moderation.models.pinned_channels import PinnedChannel
from moderation.models.preferences import Preferences
from moderation.models.purges import ManifestBucket, ManifestSummary, Purge, Undo
from moderation.models.raids import RaidSettings
from moderation.models.saved_filters import SavedFilter
from moderation.models.scan_parts import ScanPart
from moderation.models.sessions import StaffSession
from moderation.models.steps import Step, UndoStep
from moderation.models.sums import PurgeDay, PurgePeriod

__all__ = [
    "AuditEntry",
    "AuditLink",
    "Erasure",
    "Hold",
    "Invitation",
    "ManifestBucket",
    "ManifestSummary",
    "Note",
    "PinnedChannel",
    "Preferences",
    "Purge",
    "PurgeApproval",
    "PurgeDay",
    "PurgeLimits",
    "PurgePeriod",
    "RaidSettings",
    "SavedFilter",
    "ScanPart",
    "StaffIdentity",
    "StaffSession",
    "Step",
    "Undo",
    "UndoStep",
    "UnlinkedEntry",
]
