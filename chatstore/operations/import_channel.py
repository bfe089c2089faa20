"""The import of one channel: its lock, its loads one after the other, its ledger.

While a load is under way the next one is read from its file, decided and sent: the servers
always have something to do, and of each load no more is held than the next one needs.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from django.conf import settings

from chatstore.domain.discord_export import (
    ExportHeader,
    ExportRejected,
    MessageRejected,
    measure_message,
    parse_message,
)
from chatstore.domain.errors import StoreUnavailable
from chatstore.operations.channel_lease import ChannelLease, ChannelLost
from chatstore.operations.channel_lock import hold_channel, holder_of, release_channel
from chatstore.operations.export_files import ExportFile, ExportMessages, ImportProblem
from chatstore.operations.import_loads import (
    Decision,
    DryRun,
    Load,
    StartedLoad,
    close_load,
    decide_load,
    finish_load,
    start_load,
    write_load,
)
from chatstore.operations.import_names import NamesSeen, upsert_channel
from chatstore.operations.import_run import ImportRun
from chatstore.operations.import_settling import settle_imported
from chatstore.store import ledger
from chatstore.store.cassandra import drain

LOAD_MESSAGES = 5_000
LOAD_BYTES = 6 * 1024 * 1024
"""A load ends at the first of both: 50 batches, and a bound for what is held in memory (two
loads at once: one under way, one being read)."""

TRIES = 9
LONGEST_PAUSE_SECONDS = 10.0
"""A load is tried for some 55 s while the store is unavailable: a node restarts in 20."""

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class ChannelImport:
    """The import of one channel's files, from taking its lock to giving it back."""

    def __init__(self, run: ImportRun, files: Sequence[tuple[ExportFile, ExportHeader]]) -> None:
        self.whole = run
        self.files = files
        self.header = files[-1][1]
        self.channel_id = self.header.channel_id
        self.choices = run.choices
        self.names = NamesSeen()
        self.dry_run = DryRun()
        self.known_buckets: set[int] | None = None
        self.cleared_at: dict[int, float] = {}
        self.started: StartedLoad | None = None
        self.unfinished: list[Decision] = []
        self.lease: ChannelLease

    def run(self) -> None:
        """Import the files. Raises `ChannelLost` when the channel is another job's."""
        if self.choices.dry_run:
            self._import_files()
            return
        self._take_channel()
        try:
            with self.lease.kept_up():
                upsert_channel(self.header)
                self._import_files()
                self._settle()
        finally:
            self._close_unfinished()
            release_channel(self.channel_id, job=self.whole.job)

    def _close_unfinished(self) -> None:
        """Close the loads that an error cut off, as far as the store allows."""
        if self.started is not None:
            drain(self.started.flying)
        try:
            for decision in self.unfinished:
                close_load(self.channel_id, decision)
        except StoreUnavailable as error:
            log.warning("channel %d has a load that was cut off: %s", self.channel_id, error)

    def _settle(self) -> None:
        try:
            settle_imported(self.channel_id, self.cleared_at, renew=self.lease.check, job=self.whole.job)
        except StoreUnavailable as error:
            # Everything is written; what is not known of a bucket only makes its pages slower.
            log.warning("channel %d is not counted: %s", self.channel_id, error)

    def _take_channel(self) -> None:
        """Wait for a lease that may belong to a killed import; no longer than it can last."""
        until = time.monotonic() + self.choices.lease_seconds + 5
        while not hold_channel(self.channel_id, job=self.whole.job, lease_seconds=self.choices.lease_seconds):
            if time.monotonic() > until:
                holder = holder_of(self.channel_id) or "another job"
                raise ChannelLost(f"its channel {self.channel_id} is held by {holder}")
            time.sleep(0.25)
        self.lease = ChannelLease([self.channel_id], job=self.whole.job, seconds=self.choices.lease_seconds)

    def _import_files(self) -> None:
        self.known_buckets = self._try_again(lambda: find_known_buckets(self.channel_id))
        load = Load(self.channel_id)
        size = 0
        for message_bytes in self._fill(load):
            size += message_bytes
            if len(load.messages) >= LOAD_MESSAGES or size >= LOAD_BYTES:
                self._take(load)
                load.clear()
                size = 0
        self._take(load)
        self._complete()

    def _fill(self, load: Load) -> Iterator[int]:
        """Put message by message into the load; gives the bytes of each."""
        for file, _ in self.files:
            messages = ExportMessages(file, self.whole.add_bytes)
            try:
                yield from self._fill_from(file, messages, load)
            except ExportRejected as rejected:
                self.whole.fail(file, str(rejected), kind=rejected.kind)
            except Exception as error:
                log.exception("%s: message %d", file.name, messages.number)
                self.whole.crash(file, messages.number, error)

    def _fill_from(self, file: ExportFile, messages: ExportMessages, load: Load) -> Iterator[int]:
        now_ms = time.time_ns() // 1_000_000
        summary = self.whole.summary
        self.names.forget()
        for raw in messages:
            summary.messages += 1
            try:
                message = parse_message(raw, channel_id=self.channel_id, now_ms=now_ms)
                size = measure_message(message)
            except MessageRejected as bad:
                self.whole.reject(ImportProblem(file.name, bad.kind, str(bad), messages.number, messages.byte))
                continue
            self.names.add(raw)
            load.add(message)
            yield size

    def _take(self, load: Load) -> None:
        """Decide a load, send it off, finish the one before; and count what comes of it."""
        summary = self.whole.summary
        summary.already_there += load.already_there
        summary.updated += load.updated
        if not load.messages:
            return
        decision = self._try_again(lambda: self._decide(load))
        summary.already_there += decision.already_there
        summary.removed_before += decision.removed_before
        summary.restored += decision.restored
        summary.written += sum(map(len, decision.new.values()))
        summary.updated += sum(map(len, decision.changed.values()))
        if not self.choices.dry_run:
            self.names.write()
            # The channel was ours while the stamps were issued and the store was read: whatever
            # another job does there, should it take the channel now, is stamped later.
            self.lease.confirm()
            self.unfinished.append(decision)
            started = self._try_again(lambda: start_load(self.channel_id, decision, check=self.lease.check))
            self._note_known(decision)
            self._complete()
            self.started = started

    def _decide(self, load: Load) -> Decision:
        decision = decide_load(
            load,
            known_buckets=self.known_buckets,
            standing=self.choices.standing,
            under_way=self.started,
            restore=self.choices.restore,
            dry_run=self.choices.dry_run,
        )
        return self.dry_run.leave_out_seen(decision) if self.choices.dry_run else decision

    def _complete(self) -> None:
        """Finish the load that is under way, if one is."""
        if self.started is None:
            return
        started, self.started = self.started, None
        decision = started.decision
        try:
            taken_back = finish_load(self.channel_id, started, check=self.lease.check)
        except StoreUnavailable:
            taken_back = self._try_again(lambda: write_load(self.channel_id, decision, check=self.lease.check))
        self.lease.confirm()
        self.unfinished.remove(decision)
        self._note_written(decision)
        summary = self.whole.summary
        summary.removed_before += len(taken_back)
        changed = {m.message_id for found in decision.changed.values() for m in found}
        summary.updated -= len(taken_back & changed)
        summary.written -= len(taken_back - changed)

    def _note_known(self, decision: Decision) -> None:
        if self.known_buckets is not None:
            self.known_buckets.update(decision.buckets)

    def _note_written(self, decision: Decision) -> None:
        now = time.monotonic()
        if decision.buckets:
            self.whole.last_clear = now
        self.cleared_at.update(dict.fromkeys(decision.buckets, now))
        if self.choices.on_put_back is not None:
            for bucket, ids in decision.put_back.items():
                self.choices.on_put_back(self.channel_id, bucket, ids)

    def _try_again(self, act: Callable[[], Answer]) -> Answer:
        """Do what may be done twice, again while the store is unavailable, holding the channel."""
        for attempt in itertools.count():
            if not self.choices.dry_run:
                self.lease.check()
            try:
                return act()
            except StoreUnavailable:
                if attempt + 1 == TRIES:
                    raise
                time.sleep(min(2.0**attempt, LONGEST_PAUSE_SECONDS))
        raise AssertionError


def find_known_buckets(channel_id: int) -> set[int] | None:
    """The buckets with a ledger row; None where no row does not mean never written."""
    if not settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        return None
    return {bucket for bucket, _ in ledger.read_ledger(channel_id)}
