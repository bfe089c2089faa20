"""What moderators do all day: a user's messages in a thousand buckets, and ten messages selected on a page."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from django.test import Client

from chatstore.domain.buckets import BucketKey, bucket_at, bucket_ids, bucket_of
from chatstore.domain.snowflakes import make_snowflake, ms_of
from chatstore.models.users import User
from chatstore.store import authors, ledger, loads
from chatstore.store.reading.reader import read_page
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import draft_purge
from tests.bench import baseline
from tests.bench.bench_stack import seconds_of_purge, seconds_of_undo, wait_for
from tests.bench.channels import empty_channel, settle
from tests.bench.report import Figures
from tests.bench.timing import alternate, seconds_of

CHANNELS, BUCKETS, MESSAGES, THEIRS = 100, 10, 270, 20
"""Channels, buckets of each, messages of each bucket, and how many of these an author wrote."""

SELECTED = 10
SMALL_RUNS = 30
RECENT = 2_000
"""Messages of the last hour in the channel in which ten are selected."""

TEXT = "a message of the length that most have, about eighty characters of text in it all"


@dataclass(slots=True)
class ScatteredMessages:
    """Messages of two authors among those of others. One author is purged, the other's messages are deleted by row."""

    purged: int = field(default_factory=lambda: secrets.randbits(60))
    deleted: int = field(default_factory=lambda: secrets.randbits(60))
    ids: dict[BucketKey, list[int]] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        """Number of messages of one author."""
        return CHANNELS * BUCKETS * THEIRS

    def fill(self) -> None:
        """Write all messages, with their rows in the ledger and in the author index."""
        newest = bucket_at(time.time_ns() // 1_000_000) - 2
        for channel in [empty_channel() for _ in range(CHANNELS)]:
            for bucket in range(newest, newest - BUCKETS, -1):
                ledger.ensure_row(channel.pk, bucket)
                first, last = bucket_ids(bucket)
                step = (last - first) // MESSAGES
                self.ids[channel.pk, bucket] = [first + step * index + 7 for index in range(MESSAGES)]
        baseline.run_groups(baseline.INSERT, (self._rows(key, ids) for key, ids in self.ids.items()))
        places = {(author, bucket, channel) for channel, bucket in self.ids for author in (self.purged, self.deleted)}
        authors.ensure_author_buckets(places)

    def insert_again(self) -> None:
        """Insert the deleted author's messages again, as a bare program would."""
        baseline.run_groups(baseline.INSERT, (self._rows(key, self._deleted_ids(key)) for key in self.ids))

    def delete_rows(self) -> None:
        """Delete the second author's messages, a batch per bucket."""
        groups = ([(*key, message_id) for message_id in self._deleted_ids(key)] for key in self.ids)
        baseline.run_groups(baseline.DELETE_ROW, groups)

    def _deleted_ids(self, key: BucketKey) -> list[int]:
        return self.ids[key][1::13][:THEIRS]

    def _rows(self, key: BucketKey, ids: Sequence[int]) -> list[tuple[object, ...]]:
        authors_of = dict.fromkeys(self.ids[key][::13][:THEIRS], self.purged)
        authors_of |= dict.fromkeys(self._deleted_ids(key), self.deleted)
        return [(*key, i, authors_of.get(i, 1 + i % 20), 0, TEXT, time.time_ns() // 1_000) for i in ids]


def preview_of(moderator: User, author: int) -> tuple[Purge, float]:
    """Preview a purge of an author's messages; also return the seconds of the scan."""
    purge = draft_purge(moderator=moderator, selection=Selection(where=Author((author,))))
    taken = seconds_of(lambda: scan_purge(purge.pk))
    purge.refresh_from_db()
    return purge, taken


def measure_scattered(moderator: User, *, runs: int) -> Figures:
    """Yield the ratios of a purge of 20 messages in each of 1,000 buckets, of its preview and of its undo.

    The baselines delete and insert the same number of messages in the same buckets, a batch per bucket, and read the
    same buckets, 16 in flight. The purge includes quarantine and verification, from the confirmation on.
    """
    scattered = ScatteredMessages()
    scattered.fill()
    settle()
    previews: list[float] = []
    undos: list[float] = []
    inserts: list[float] = []

    def ours() -> float:
        purge, taken = preview_of(moderator, scattered.purged)
        previews.append(taken)
        taken = seconds_of_purge(moderator, purge)
        undos.append(seconds_of_undo(moderator, purge))
        return taken

    def theirs() -> float:
        taken = seconds_of(scattered.delete_rows)
        inserts.append(seconds_of(scattered.insert_again))
        return taken

    # The first preview counts the tombstones of every bucket; both sides warm up.
    ours()
    theirs()
    for taken in (previews, undos, inserts):
        taken.clear()
    sides = alternate(ours, theirs, runs=runs)
    yield "scattered_vs_row_deletes", sides.speed
    yield "scattered_messages_per_second", scattered.messages / sides.ours
    yield "scattered_undo_vs_insert", statistics.median(inserts) / statistics.median(undos)
    yield "scattered_undo_messages_per_second", scattered.messages / statistics.median(undos)
    scans = [seconds_of(lambda: baseline.scan_buckets(scattered.ids)) for _ in range(runs)]
    yield "scattered_preview_vs_scan", statistics.median(scans) / statistics.median(previews)


def measure_small(moderator: User) -> Figures:
    """Yield the seconds of selecting ten messages on a page: until the preview is shown, and until they are gone."""
    taken = [small_purge(*selected) for selected in _small(moderator)]
    yield "small_preview_seconds", statistics.median(preview for preview, _ in taken)
    yield "small_purge_seconds", statistics.median(purge for _, purge in taken)


def _small(moderator: User) -> Iterator[tuple[Client, int, list[int]]]:
    """Yield ten messages of the last hour at a time, from a channel of old and recent ones."""
    client = Client(SERVER_NAME="localhost")
    client.force_login(moderator)
    channel = empty_channel()
    start = time.time_ns() // 1_000_000 - 50 * 60_000
    ids = [make_snowflake(start + index * 1_000) for index in range(RECENT)]
    for bucket in {bucket_of(i) for i in ids}:
        ledger.ensure_row(channel.pk, bucket)
        loads.clear_live_in([(channel.pk, bucket)])
    rows = [(channel.pk, bucket_of(i), i, 1, 0, TEXT, ms_of(i) * 1_000) for i in ids]
    baseline.run_groups(baseline.INSERT, [rows[start : start + 100] for start in range(0, len(rows), 100)])
    for run in range(SMALL_RUNS):
        yield client, channel.pk, ids[-SELECTED * (run + 1) : len(ids) - SELECTED * run]


def small_purge(client: Client, channel_id: int, ids: Sequence[int]) -> tuple[float, float]:
    """Return the seconds until the preview of the messages is shown, and from its confirmation until they are gone."""
    began = time.perf_counter()
    posted = client.post(f"/channels/{channel_id}/delete/", {"selected": "1", "message_id": list(map(str, ids))})
    address = posted["Location"]
    purge = Purge.objects.get(pk=int(address.split("/")[2]))
    wait_for_preview(purge)
    shown = client.get(address).content.decode()
    previewed = time.perf_counter() - began
    if f"Delete {len(ids)} messages" not in shown:
        raise RuntimeError("the preview cannot be confirmed")
    manifest_hash = bytes(purge.manifest_hash or b"").hex()
    began = time.perf_counter()
    client.post(f"{address}confirm/", {"reason": "bench", "manifest_hash": manifest_hash})
    while {message.message_id for message in read_page(channel_id).messages}.intersection(ids):
        time.sleep(0.01)
    gone = time.perf_counter() - began
    wait_for(purge, PurgeState.DONE)
    return previewed, gone


def wait_for_preview(purge: Purge) -> None:
    """Wait until the purge is scanned."""
    while True:
        purge.refresh_from_db()
        if purge.state != PurgeState.SCANNING:
            return
        time.sleep(0.02)
