"""Filled channels that parts share, by what has happened to them.

Filling takes longer than most measurements, so a channel serves several:

- The channels whose purge is measured are those whose undo is measured next.
- The inserts against which undo and import are measured leave channels that are as good as filled ones: they are
  filled by the very same statements.
- An undone channel holds all its messages above what the purge left behind, so no purge or rewrite is measured on it.
  Row deletes read nothing: to them it is like any other, and the rewrite's rival deletes from it.
- An imported channel's ledger knows its bounds already, so only the foreground part takes it, which measures another
  channel's pages.
- A channel that was only read or scanned is untouched: a scan writes nothing to Cassandra.

A channel that is taken and not put back is gone, also when a part fails in between.
"""

from __future__ import annotations

from django.contrib.auth.models import User

from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import draft_purge
from tests.bench.channels import Filled, fill_channel, settle
from tests.bench.crew import seconds_of_purge
from tests.moderation.rooms import choose

SMALL = 5_000
"""Messages of the channel whose newest page is read."""


class Stock:
    """Channels of `size` messages; filled where a part needs more than there are, several in one go."""

    def __init__(self, moderator: User, size: int) -> None:
        self.moderator = moderator
        self.size = size
        self.fresh: list[Filled] = []
        self.purged: list[tuple[Filled, Purge]] = []
        self.undone: list[Filled] = []
        self.imported: list[Filled] = []
        self._small: Filled | None = None

    def prepare_fresh(self, count: int) -> None:
        """Fill channels until there are `count` fresh ones. Not settled."""
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
        """Fill channels until there are `count` whose messages a rival may delete by row, beside the fresh ones."""
        while len(self.undone) < count:
            self.undone.append(fill_channel(self.size))

    def prepare_busy(self, count: int) -> None:
        """Fill channels until there are `count` that `take_busy` can give."""
        self.prepare_fresh(count - len(self.imported))

    def take_busy(self) -> Filled:
        """Take a channel whose purge keeps the servers busy while something else is measured."""
        return (self.imported or self.fresh).pop(0)

    def purge_fresh(self) -> float:
        """Purge a fresh channel, all but its oldest message; the seconds, without the scan."""
        filled = self.fresh.pop(0)
        purge = scan(self.moderator, all_but_oldest(filled))
        taken = seconds_of_purge(self.moderator, purge)
        self.purged.append((filled, purge))
        return taken

    @property
    def untouched(self) -> Filled:
        """A fresh channel to read from, which stays in the stock."""
        self.prepare_fresh(1)
        return self.fresh[-1]

    @property
    def small(self) -> Filled:
        """A channel of `SMALL` messages to read from; the same each time."""
        if self._small is None:
            self._small = fill_channel(SMALL)
        return self._small


def scan(moderator: User, selection: Selection) -> Purge:
    """A scanned purge of the selection."""
    purge = draft_purge(moderator=moderator, selection=selection)
    scan_purge(purge.id)
    purge.refresh_from_db()
    return purge


def all_but_oldest(filled: Filled) -> Selection:
    """Everything but the channel's oldest message."""
    return choose(filled.channel.id, after_id=filled.ids[1])
