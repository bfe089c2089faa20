"""Import of DiscordChatExporter files, by channel: the files of one channel are one import.

What is never done: more held in memory than a load of messages; a channel written that
another job holds; a message brought back that was withdrawn, or removed by a purge that
stands (unless it is asked to). A run that died is simply repeated: what is there already is
left as it is, and once its lease has lapsed the channel is free again.
"""

from __future__ import annotations

import gc
import itertools
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from django.conf import settings

from chatstore.domain.discord_export import (
    ExportHeader,
    ExportRejected,
    MessageRejected,
    measure_message,
    parse_message,
)
from chatstore.domain.errors import ChatstoreError, StoreUnavailable
from chatstore.operations.channel_lock import hold_channel, holder_of, release_channel, renew_hold
from chatstore.operations.clock import check_clock
from chatstore.operations.export_files import (
    ExportFile,
    FailedFile,
    find_exports,
    read_header,
    read_messages,
)
from chatstore.operations.import_loads import (
    Decision,
    DryRun,
    Load,
    Standing,
    StartedLoad,
    decide_load,
    finish_load,
    start_load,
    write_load,
)
from chatstore.operations.import_names import NamesSeen, upsert_channel
from chatstore.operations.import_settling import settle_imported, wait_for_pages
from chatstore.store import ledger

LOAD_MESSAGES = 5_000
LOAD_BYTES = 6 * 1024 * 1024
"""A load ends at the first of both: 50 batches, and a bound for what is held in memory (two
loads at once: one under way, one being read)."""

LEASE_SECONDS = 30.0
"""An import holds its channel by lease, so that a killed one does not hold it for ever."""

TRIES = 9
LONGEST_PAUSE_SECONDS = 10.0
"""A load is tried for some 55 s while the store is unavailable: a node restarts in 20."""

TELL_EVERY_SECONDS = 0.2
REJECTIONS_KEPT = 100

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class ChannelLost(ChatstoreError):
    """The lease lapsed while the import stood still, and another job took the channel."""


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import is: bytes of files read, of all; messages read; seconds since it began."""

    bytes_done: int
    bytes_total: int
    messages: int
    seconds: float


@dataclass(slots=True)
class ImportSummary:
    """What an import did: messages = written + already_there + updated + removed_before + rejected.

    restored: those of `written` for which a purge stood. rejections: the first of the
    rejected, each with its file and reason. seconds: until everything was written and counted.
    """

    files: int = 0
    channels: int = 0
    messages: int = 0
    written: int = 0
    already_there: int = 0
    updated: int = 0
    removed_before: int = 0
    restored: int = 0
    rejected: int = 0
    failed_files: list[FailedFile] = field(default_factory=list)
    rejections: list[FailedFile] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether every file was read to its end and every message of it was taken."""
        return not self.failed_files and not self.rejected


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """How to import. `restore`: what standing purges removed comes back. `dry_run`: nothing is written.

    standing: for which ids of a (channel, bucket) a purge stands. on_restored: told which
    ids of a (channel, bucket) came back. lease_seconds: how long a killed import holds its channel.
    """

    standing: Standing
    on_restored: Callable[[int, int, Sequence[int]], None] | None = None
    restore: bool = False
    dry_run: bool = False
    lease_seconds: float = LEASE_SECONDS


def import_discord(
    paths: Sequence[Path],
    *,
    choices: ImportChoices,
    tell: Callable[[ImportProgress], None] | None = None,
) -> ImportSummary:
    """Import files, folders and archives; what goes wrong is named in the summary, the rest goes on.

    Raises `WriteRefused` when this process's clock is off, `StoreUnavailable` when the store
    stays away; what was written by then stays, and the same import again completes it.
    """
    with collect_seldom():
        return _Import(choices, tell).run(paths)


@contextmanager
def collect_seldom() -> Iterator[None]:
    """Let Python look for cycles a hundred times less often: what the parser makes has none.

    The looking took a tenth of an import's time.
    """
    before = gc.get_threshold()
    gc.set_threshold(before[0] * 100, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Import:
    """One run over all its channels."""

    def __init__(self, choices: ImportChoices, tell: Callable[[ImportProgress], None] | None) -> None:
        self.choices = choices
        self.summary = ImportSummary()
        self.job = f"import:{uuid.uuid4()}"
        self.last_clear: float | None = None
        self._tell = tell
        self._bytes_done = self._bytes_total = 0
        self._began = time.monotonic()
        self._told_at = 0.0

    def run(self, paths: Sequence[Path]) -> ImportSummary:
        check_clock()
        files, failed = find_exports(paths)
        self.summary.files = len(files)
        self.summary.failed_files += failed
        self._bytes_total = sum(file.size for file in files)
        for headers in self._by_channel(files).values():
            self.summary.channels += 1
            try:
                _ChannelImport(self, headers).run()
            except ChannelLost as lost:
                self.summary.failed_files += [FailedFile(file.name, str(lost)) for file, _ in headers]
        self.summary.seconds = time.monotonic() - self._began
        wait_for_pages(self.last_clear)
        log.info("import: %d messages, %d written", self.summary.messages, self.summary.written)
        return self.summary

    def _by_channel(self, files: Sequence[ExportFile]) -> dict[int, list[tuple[ExportFile, ExportHeader]]]:
        grouped: dict[int, list[tuple[ExportFile, ExportHeader]]] = defaultdict(list)
        for file in files:
            try:
                header = read_header(file)
            except ExportRejected as rejected:
                self.summary.failed_files.append(FailedFile(file.name, str(rejected)))
                self._bytes_total -= file.size
            else:
                grouped[header.channel_id].append((file, header))
        return grouped

    def add_bytes(self, count: int) -> None:
        """Told by the reader; tells on, a few times a second."""
        self._bytes_done += count
        now = time.monotonic()
        if self._tell is not None and now - self._told_at > TELL_EVERY_SECONDS:
            self._told_at = now
            seconds = now - self._began
            self._tell(ImportProgress(self._bytes_done, self._bytes_total, self.summary.messages, seconds))

    def reject(self, file: ExportFile, reason: str) -> None:
        """Count a message that cannot be taken, and name the first ones."""
        self.summary.rejected += 1
        if len(self.summary.rejections) < REJECTIONS_KEPT:
            self.summary.rejections.append(FailedFile(file.name, reason))


class _ChannelImport:
    """The import of one channel's files, from taking its lock to giving it back."""

    def __init__(self, whole: _Import, files: Sequence[tuple[ExportFile, ExportHeader]]) -> None:
        self.whole = whole
        self.files = files
        self.header = files[-1][1]
        self.channel_id = self.header.channel_id
        self.choices = whole.choices
        self.names = NamesSeen()
        self.dry_run = DryRun()
        self.known_buckets: set[int] | None = None
        self.cleared_at: dict[int, float] = {}
        self.renewed_at = 0.0
        self.started: StartedLoad | None = None

    def run(self) -> None:
        if self.choices.dry_run:
            self._import_files()
            return
        self._take_channel()
        try:
            upsert_channel(self.header)
            self._import_files()
            self._settle()
        finally:
            release_channel(self.channel_id, job=self.whole.job)

    def _settle(self) -> None:
        try:
            settle_imported(self.channel_id, self.cleared_at, renew=self._renew, job=self.whole.job)
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
        self.renewed_at = time.monotonic()

    def _renew(self) -> None:
        now = time.monotonic()
        if now - self.renewed_at < self.choices.lease_seconds / 5:
            return
        if not renew_hold(self.channel_id, job=self.whole.job, lease_seconds=self.choices.lease_seconds):
            raise ChannelLost(f"its channel {self.channel_id} was taken over by another job")
        self.renewed_at = now

    def _import_files(self) -> None:
        self.known_buckets = find_known_buckets(self.channel_id)
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
            try:
                yield from self._fill_from(file, load)
            except ExportRejected as rejected:
                self.whole.summary.failed_files.append(FailedFile(file.name, str(rejected)))

    def _fill_from(self, file: ExportFile, load: Load) -> Iterator[int]:
        now_ms = time.time_ns() // 1_000_000
        summary = self.whole.summary
        self.names.forget()
        for raw in read_messages(file, self.whole.add_bytes):
            summary.messages += 1
            try:
                message = parse_message(raw, channel_id=self.channel_id, now_ms=now_ms)
                size = measure_message(message)
            except MessageRejected as rejected:
                self.whole.reject(file, str(rejected))
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
        summary.restored += sum(map(len, decision.restored.values()))
        summary.written += sum(map(len, decision.new.values()))
        summary.updated += sum(map(len, decision.changed.values()))
        if not self.choices.dry_run:
            self.names.write()
            started = self._try_again(lambda: start_load(self.channel_id, decision))
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
            taken_back = finish_load(self.channel_id, started)
        except StoreUnavailable:
            taken_back = self._try_again(lambda: write_load(self.channel_id, decision))
        self._note_written(decision.buckets, decision.restored)
        summary = self.whole.summary
        summary.removed_before += len(taken_back)
        changed = {m.message_id for found in decision.changed.values() for m in found}
        summary.updated -= len(taken_back & changed)
        summary.written -= len(taken_back - changed)

    def _note_known(self, decision: Decision) -> None:
        if self.known_buckets is not None:
            self.known_buckets.update(decision.buckets)

    def _note_written(self, buckets: Sequence[int], restored: dict[int, list[int]]) -> None:
        now = time.monotonic()
        if buckets:
            self.whole.last_clear = now
        self.cleared_at.update(dict.fromkeys(buckets, now))
        if self.choices.on_restored is not None:
            for bucket, ids in restored.items():
                self.choices.on_restored(self.channel_id, bucket, ids)

    def _try_again(self, act: Callable[[], Answer]) -> Answer:
        """Do what may be done twice, again while the store is unavailable, holding the channel."""
        for attempt in itertools.count():
            if not self.choices.dry_run:
                self._renew()
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
