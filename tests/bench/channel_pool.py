"""Filled channels that parts share, grouped by their state.

Filling takes longer than most measurements, so a channel serves several of them:

- Channels whose purge was measured serve for measuring the undo.
- The inserts that undo and import are compared with leave channels that count as filled: the statements are the same.
- An undone channel has its messages above the tombstones of the purge, so no purge or rewrite is measured on it. Row
  deletes read nothing, so the baseline of the rewrite deletes from it.
- The ledger of an imported channel has its bounds already, so only the foreground part uses it, which measures the
  pages of another channel.
- A channel that was only read or scanned is untouched: a scan writes nothing to Cassandra.

A channel that is taken and not returned is lost to the pool, also when a part fails in between.
"""

from __future__ import annotations

from chatstore.models.users import User
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.preview.scan import scan_to_end
from moderation.operations.purging.lifecycle import draft_purge
from tests.bench.bench_stack import seconds_of_purge
from tests.bench.channels import Filled, fill_channel, settle
from tests.bench.scattered_messages import ScatteredMessages
from tests.moderation.channels import choose

SMALL = 5_000
"""Messages of the channel whose newest page is read."""


class ChannelPool:
    """Channels of `size` messages, filled on demand and several at once."""

    def __init__(self, moderator: User, size: int) -> None:
        self.moderator = moderator
        self.size = size
        self.fresh: list[Filled] = []
        self.purged: list[tuple[Filled, Purge]] = []
        self.undone: list[Filled] = []
        self.imported: list[Filled] = []
        self._small: Filled | None = None
        self._scattered: ScatteredMessages | None = None

    def prepare_fresh(self, count: int) -> None:
        """Fill channels until there are `count` fresh ones. Does not settle."""
        while len(self.fresh) < count:
            self.fresh.append(fill_channel(self.size))

    def prepare_purged(self, count: int) -> None:
        """Purge fresh channels until there are `count` purged ones."""
        lacking = count - len(self.purged)
        if lacking > 0:
            self.prepare_fresh(lacking)
            settle()
        for _ in range(lacking):
            self.purge_fresh()

    def prepare_deletable(self, count: int) -> None:
        """Fill channels until the baseline can delete from `count` by row; fresh ones are not counted."""
        while len(self.undone) < count:
            self.undone.append(fill_channel(self.size))

    def prepare_busy(self, count: int) -> None:
        """Fill channels until `take_busy` can return `count` of them."""
        self.prepare_fresh(count - len(self.imported))

    def take_busy(self) -> Filled:
        """Take a channel whose purge keeps the servers busy during another measurement."""
        return (self.imported or self.fresh).pop(0)

    def purge_fresh(self) -> float:
        """Purge a fresh channel except its oldest message; return the seconds without the scan."""
        filled = self.fresh.pop(0)
        purge = scan(self.moderator, all_but_oldest(filled))
        taken = seconds_of_purge(self.moderator, purge)
        self.purged.append((filled, purge))
        return taken

    @property
    def untouched(self) -> Filled:
        """A fresh channel for reading, which stays in the pool."""
        self.prepare_fresh(1)
        return self.fresh[-1]

    @property
    def small(self) -> Filled:
        """The channel of `SMALL` messages for reading; always the same."""
        if self._small is None:
            self._small = fill_channel(SMALL)
        return self._small

    @property
    def scattered(self) -> ScatteredMessages:
        """The guild of a hundred channels; always the same. What a part deletes there it restores."""
        if self._scattered is None:
            self._scattered = ScatteredMessages()
            self._scattered.fill()
        return self._scattered


def scan(moderator: User, selection: Selection) -> Purge:
    """Draft and scan a purge of the selection."""
    purge = draft_purge(moderator=moderator, selection=selection)
    scan_to_end(purge.id)
    purge.refresh_from_db()
    return purge


def all_but_oldest(filled: Filled) -> Selection:
    """Select everything except the channel's oldest message."""
    return choose(filled.channel.id, after_id=filled.ids[1])
