"""Import of a group of channels: locks, loads one after the other, ledger refresh.

A large channel is imported alone, many small ones as a group, so that each round trip serves all of them.
While one load is being written, the next one is read from its file, decided and sent. This keeps the servers
busy, and no more of a load is kept in memory than the next one needs.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from django.conf import settings

from chatstore.domain.buckets import BucketKey
from chatstore.domain.discord_export import (
    ExportHeader,
    ExportRejected,
    MessageRejected,
    measure_message,
    parse_message,
)
from chatstore.domain.errors import StoreUnavailable
from chatstore.operations.coordination.channel_lease import ChannelLease
from chatstore.operations.coordination.channel_lock import lock_channels, release_channels
from chatstore.operations.importing.completion import refresh_buckets
from chatstore.operations.importing.export_files import ExportFile, ExportMessages, ImportProblem
from chatstore.operations.importing.loads import (
    Decision,
    DeletedIdsIn,
    DryRun,
    Load,
    StartedLoad,
    abort_load,
    decide_load,
    finish_load,
    start_load,
    write_load,
)
from chatstore.operations.importing.names import NamesSeen, upsert_channels
from chatstore.operations.importing.run import ImportRun
from chatstore.store.cassandra import WINDOW, drain
from chatstore.store.loads import CONCURRENT_WHOLE_READS, read_live_stamps

LOAD_MESSAGES = 5_000
LOAD_BYTES = 6 * 1024 * 1024
"""A load ends at whichever limit is reached first: 50 batches, and a bound on memory (two loads at a time, one
being written and one being read).
"""

SMALL_ROWS = 1_000
"""Buckets of up to this many rows are read concurrently."""

MAX_ATTEMPTS = 9
MAX_RETRY_DELAY_SECONDS = 10.0
"""A load is retried for about 55 s while the store is unavailable; a node restarts in 20 s."""

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")
ChannelFiles = Sequence[tuple[ExportFile, ExportHeader]]
"""Files of one channel, in the order of their parts."""

Channels = Mapping[int, ChannelFiles]
"""Files by channel."""


class ChannelsImport:
    """Import of the files of some channels, from locking the channels to releasing them.

    channels: while it runs, those that it locked.
    """

    def __init__(self, run: ImportRun, channels: Channels) -> None:
        self.whole = run
        self.channels = dict(channels)
        self.choices = run.choices
        self.names = NamesSeen()
        self.dry_run = DryRun()
        self.live_stamps: dict[BucketKey, int] = {}
        self.written: set[BucketKey] = set()
        self.new_rows: Counter[BucketKey] = Counter()
        self.started: StartedLoad | None = None
        self.unfinished: list[Decision] = []
        self.deleted_ids: DeletedIdsIn
        self.lease: ChannelLease

    def run(self) -> None:
        """Import the files of the channels that no other job has locked.

        Raises `ChannelLost` if another job took over one of them.
        """
        if self.choices.dry_run:
            self._import_files()
            return
        self._lock_channels()
        if not self.channels:
            return
        try:
            with self.lease.auto_renewed():
                upsert_channels(files[-1][1] for files in self.channels.values())
                self._import_files()
                self._refresh_ledger()
        finally:
            self._abort_unfinished()
            release_channels(self.channels, job=self.whole.job)

    def _lock_channels(self) -> None:
        job, seconds = self.whole.job, self.choices.lease_seconds
        taken = lock_channels(self.channels, job=job, lease_seconds=seconds)
        self.channels = {channel_id: files for channel_id, files in self.channels.items() if channel_id in taken}
        self.lease = ChannelLease(taken, job=job, seconds=seconds)

    def _abort_unfinished(self) -> None:
        """Abort the loads that an error interrupted, as far as the store is available."""
        if self.started is not None:
            drain(self.started.pending)
        try:
            for decision in self.unfinished:
                abort_load(decision)
        except StoreUnavailable as error:
            log.warning("could not abort an interrupted load: %s", error)

    def _refresh_ledger(self) -> None:
        try:
            small = {key for key, rows in self.new_rows.items() if rows <= SMALL_ROWS}
            for keys, window in ((small, WINDOW), (self.written - small, CONCURRENT_WHOLE_READS)):
                refresh_buckets(sorted(keys), job=self.whole.job, check=self.lease.confirm, window=window)
        except StoreUnavailable as error:
            # Everything is written; an unknown count only makes pages of the bucket slower.
            log.warning("could not count %d buckets: %s", len(self.written), error)

    def _import_files(self) -> None:
        self.deleted_ids = self.choices.deleted_ids(self.channels.keys())
        self.live_stamps = self._retry(lambda: read_live_stamps(list(self.channels)))
        load = Load()
        size = 0
        for message_bytes in self._fill(load):
            size += message_bytes
            if load.count >= LOAD_MESSAGES or size >= LOAD_BYTES:
                self._take(load)
                load.clear()
                size = 0
        self._take(load)
        self._complete()

    def _fill(self, load: Load) -> Iterator[int]:
        """Add messages to the load one by one; yield the size of each in bytes."""
        for file, header in itertools.chain.from_iterable(self.channels.values()):
            messages = ExportMessages(file, self.whole.add_bytes, archives=self.whole.archives)
            try:
                yield from self._fill_from(file, header, messages, load)
            except ExportRejected as rejected:
                self.whole.fail(file, str(rejected), kind=rejected.kind)
            except Exception as error:
                log.exception("%s: message %d", file.name, messages.number)
                self.whole.crash(file, messages.number, error)

    def _fill_from(self, file: ExportFile, header: ExportHeader, messages: ExportMessages, load: Load) -> Iterator[int]:
        now_ms = time.time_ns() // 1_000_000
        summary = self.whole.summary
        self.names.open_file(header.guild_id)
        for raw in messages:
            summary.messages += 1
            try:
                message = parse_message(raw, channel_id=header.channel_id, now_ms=now_ms)
                size = measure_message(message)
            except MessageRejected as bad:
                self.whole.reject(ImportProblem(file.name, bad.kind, str(bad), messages.number, messages.byte))
                continue
            self.names.add(raw, message)
            load.add(message)
            yield size

    def _take(self, load: Load) -> None:
        """Decide a load, send it, finish the previous one, and count the results."""
        summary = self.whole.summary
        summary.already_there += load.already_there
        summary.updated += load.updated
        if not load.count:
            return
        decision = self._retry(lambda: self._decide(load))
        summary.already_there += decision.already_there
        summary.deleted_before += decision.deleted_before
        summary.restored += decision.restored
        summary.written += sum(map(len, decision.new.values()))
        summary.updated += sum(map(len, decision.changed.values()))
        if not self.choices.dry_run:
            self.names.write()
            # The channels were locked while the stamps were issued and the store was read. If another job locks
            # one now, its writes get later stamps.
            self.lease.confirm()
            self.unfinished.append(decision)
            started = self._retry(lambda: start_load(decision, check=self.lease.check))
            for key, found in decision.new.items():
                # The size of a bucket that was never written before is now known.
                if key not in self.live_stamps or key in self.new_rows:
                    self.new_rows[key] += len(found)
            self.live_stamps.update(decision.clears)
            self._complete()
            self.started = started

    def _decide(self, load: Load) -> Decision:
        decision = decide_load(
            load,
            live_stamps=self.live_stamps,
            read_unlisted=not settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN,
            deleted_ids=self.deleted_ids,
            previous=self.started,
            restore=self.choices.restore,
            dry_run=self.choices.dry_run,
        )
        return self.dry_run.exclude_seen(decision) if self.choices.dry_run else decision

    def _complete(self) -> None:
        """Finish the load that is being written, if any."""
        if self.started is None:
            return
        started, self.started = self.started, None
        decision = started.decision
        try:
            withdrawn_meanwhile = finish_load(started, check=self.lease.check)
        except StoreUnavailable:
            withdrawn_meanwhile = self._retry(lambda: write_load(decision, check=self.lease.check))
        # The channels are still locked, so no other job has set `live` since it was cleared.
        self.lease.confirm()
        self.unfinished.remove(decision)
        self._note_written(decision)
        summary = self.whole.summary
        summary.deleted_before += len(withdrawn_meanwhile)
        changed = {(m.channel_id, m.message_id) for found in decision.changed.values() for m in found}
        summary.updated -= len(withdrawn_meanwhile & changed)
        summary.written -= len(withdrawn_meanwhile - changed)

    def _note_written(self, decision: Decision) -> None:
        if decision.clears:
            self.whole.last_clear = time.monotonic()
        self.written.update(decision.clears)
        if self.choices.on_restored is not None:
            for (channel_id, bucket), ids in decision.restored_ids.items():
                self.choices.on_restored(channel_id, bucket, ids)

    def _retry(self, operation: Callable[[], Answer]) -> Answer:
        """Call an idempotent function, and retry while the store is unavailable; the channels stay locked."""
        for attempt in itertools.count():
            if not self.choices.dry_run:
                self.lease.check()
            try:
                return operation()
            except StoreUnavailable:
                if attempt + 1 == MAX_ATTEMPTS:
                    raise
                time.sleep(min(2.0**attempt, MAX_RETRY_DELAY_SECONDS))
        raise AssertionError
