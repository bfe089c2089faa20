"""A guild of very many channels in which twenty accounts have posted, as an import would leave it.

Everything is derived from the guild's id, so that it can be purged and undone again, and compared with what is stored.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.domain.live import Live
from chatstore.domain.snowflakes import ms_of
from chatstore.models import Channel, ChatUser, Guild
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.operations.ledger.refresh import SOURCE
from chatstore.store import authors, loads
from tests.bench import baseline
from tests.bench.channels import TEXT, new_id

ACCOUNTS = 20
KEPT = 2
"""Accounts whose messages are purged, and messages of another one between them in each channel."""

CHANNELS_AT_ONCE = 500
"""Channels whose rows are in memory, and after which progress is reported."""

Row = tuple[int, int, int, int, int, str, int]
"""The values of `baseline.INSERT`."""

_TEXTS = [TEXT[random.Random(n).randrange(60) :] + f" {n}" for n in range(997)]


@dataclass(frozen=True, slots=True)
class LargeGuild:
    """The guild's id, its channels, and the messages of all accounts, the same number in each channel."""

    id: int
    channels: int
    messages: int

    @property
    def name(self) -> str:
        """The guild's name once it is filled."""
        return f"{self.messages:,} messages in {self.channels:,} channels"

    @property
    def channel_ids(self) -> range:
        return range(self.id + 1, self.id + 1 + self.channels)

    @property
    def accounts(self) -> range:
        return range(self.id + 1, self.id + 1 + ACCOUNTS)

    @property
    def bystander(self) -> int:
        """The author of the messages that are kept."""
        return self.id

    @property
    def bucket(self) -> int:
        """The bucket of all messages, which is sealed."""
        return bucket_of(self.id) - 2

    def rows_of(self, channel_id: int) -> list[Row]:
        """Return the rows of a channel, by id."""
        size = self.messages // self.channels + KEPT
        first, last = bucket_ids(self.bucket)
        apart = (last - first) // size
        kept = {size * (n + 1) // (KEPT + 1) for n in range(KEPT)}
        # No id is in two channels.
        ids = range(first + channel_id - self.id, last, apart)
        return [
            (
                channel_id,
                self.bucket,
                message_id,
                self.bystander if n in kept else self.accounts[n % ACCOUNTS],
                0,
                _TEXTS[(channel_id + n) % len(_TEXTS)],
                ms_of(message_id) * 1_000,
            )
            for n, message_id in enumerate(itertools.islice(ids, size))
        ]

    def kept_rows_of(self, channel_id: int) -> list[Row]:
        """Return those of them that a purge of the accounts keeps."""
        return [row for row in self.rows_of(channel_id) if row[3] == self.bystander]


def find_filled(*, channels: int, messages: int) -> LargeGuild | None:
    """Return the newest guild of this size that was filled."""
    for guild_id in Guild.objects.order_by("-id").values_list("id", flat=True):
        guild = LargeGuild(guild_id, channels, messages)
        if Guild.objects.filter(id=guild_id, name=guild.name).exists():
            return guild
    return None


def fill_guild(*, channels: int, messages: int, report: Callable[[str], object]) -> LargeGuild:
    """Write the messages of a new guild with their rows in the author index and in the ledger. Does not settle."""
    guild = LargeGuild(new_id(), channels, messages)
    stored = Guild.objects.create(id=guild.id, name="being filled")
    users = [ChatUser(id=author, name=f"account-{author}") for author in (guild.bystander, *guild.accounts)]
    ChatUser.objects.bulk_create(users)
    named = (Channel(id=i, guild=stored, name=f"large-{i - guild.id}") for i in guild.channel_ids)
    Channel.objects.bulk_create(named, batch_size=5_000)
    for start in range(0, channels, CHANNELS_AT_ONCE):
        some = guild.channel_ids[start : start + CHANNELS_AT_ONCE]
        authors.ensure_author_buckets(
            {(author, guild.bucket, i) for author in (guild.bystander, *guild.accounts) for i in some}
        )
        began_us, began_at = postgres_now_us(), postgres_now()
        baseline.run_groups(baseline.INSERT, _batches(guild, some))
        _store_counts(guild, some, began_us, began_at)
        report(f"{start + len(some):,} of {channels:,} channels are filled")
    Guild.objects.filter(id=guild.id).update(name=guild.name)
    return guild


def _batches(guild: LargeGuild, channel_ids: range) -> Iterator[list[Row]]:
    for channel_id in channel_ids:
        rows = guild.rows_of(channel_id)
        for start in range(0, len(rows), baseline.BATCH):
            yield rows[start : start + baseline.BATCH]


def _store_counts(guild: LargeGuild, channel_ids: range, began_us: int, began_at: dt.datetime) -> None:
    """Store what the read at the end of an import finds."""
    lives = {}
    for channel_id in channel_ids:
        ids = [row[2] for row in guild.rows_of(channel_id)]
        lives[channel_id, guild.bucket] = Live(ids[0], ids[-1], len(ids))
    loads.set_live_in(lives, read_began_us=began_us)
    counts = {key: live.count or 0 for key, live in lives.items()}
    loads.note_live_rows_in(counts, source=SOURCE, measured_at=began_at)
