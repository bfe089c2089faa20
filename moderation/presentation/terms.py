"""Terms of Cassandra that operators meet: each is explained on hover, on focus, and in the glossary."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

TERMS: dict[str, tuple[str | Promise, str | Promise]] = {
    "bucket": (
        _("bucket"),
        _("The messages of one channel from one period of ten days. Cassandra stores each bucket as one partition."),
    ),
    "partition": (
        _("partition"),
        _("Rows that Cassandra stores and reads as one unit. Here it contains one bucket."),
    ),
    "tombstones": (
        _("tombstones"),
        _("Markers that Cassandra writes in place of deleted rows. Reads scan them until a compaction drops them."),
    ),
    "gc_grace": (
        "gc_grace",
        _(
            "The time for which Cassandra keeps tombstones (gc_grace_seconds). "
            "Every replica must be repaired within it, or deleted messages may reappear."
        ),
    ),
    "repair": (
        _("repair"),
        _("Compares the replicas of a table and copies what one of them missed, deletes included."),
    ),
    "compaction": (
        _("compaction"),
        _("Merges Cassandra’s data files, and drops tombstones that are older than gc_grace."),
    ),
    "ledger": (
        _("ledger"),
        _("The table that records which buckets were written and which of them still contain messages."),
    ),
    "probe": (
        _("probe"),
        _("Reads the newest page of a channel from every replica, and records what the read cost."),
    ),
}
"""Label and explanation by name. The glossary lists them in this order."""
