"""A second moderator, who purges and restores beside the large purge, during every kill and outage.

In one thread ten selected messages at a time; in another an author's messages in many channels, whose steps are
processed in groups, and the undo of each such purge. Every one must be exact, and none may starve.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import Error, connection, connections

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.store import cassandra
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import choose, confirm, ids_of, make_channel, old_ids, write
from tests.moderation.scattered import Scattered, preview_scattered

SELECTED = 10
CHANNELS, BUCKETS, MESSAGES = 10, 6, 60
"""Channels of the second moderator, buckets of each and messages of each bucket: enough for 360 small purges."""

SCATTERED, SCATTERED_CHANNELS, SCATTERED_BUCKETS = 8, 10, 15
"""Purges of an author in many channels, the channels of each, and the buckets of each channel: 150 steps."""

STARVES_AFTER_SECONDS = 240.0
"""Time that a preview, a purge or an undo may take, apart from outages of a node or of Postgres."""

POLL_SECONDS = 0.05

Result = TypeVar("Result")


@dataclass(slots=True)
class SecondModerator:
    """The two threads, what they have checked so far, and the longest wait in seconds.

    small: purges of ten messages. purged, restored: scattered purges and their undos.
    """

    moderator: User
    scattered: list[Scattered]
    buckets: list[tuple[Channel, int, list[int]]]
    small: int = 0
    purged: int = 0
    restored: int = 0
    longest: float = 0.0
    _failed: list[Exception] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        self._threads = [
            # A soak that has failed does not wait for purges that no worker continues.
            threading.Thread(target=self._run, args=(work,), daemon=True)
            for work in (self._purge_small, self._purge_scattered)
        ]
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Raise what a thread raised."""
        if self._failed:
            raise self._failed[0]

    def stop(self) -> None:
        """Begin no other purge."""
        self._stop.set()

    def end(self, while_waiting: Callable[[], object]) -> None:
        """Let both threads finish what they have begun, and raise what they raised."""
        self.stop()
        while any(thread.is_alive() for thread in self._threads):
            while_waiting()
            time.sleep(POLL_SECONDS)
        self.check()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as failed:  # noqa: BLE001 - it is raised where the soak checks
            self._failed.append(failed)
        finally:
            connections.close_all()

    def _purge_small(self) -> None:
        for start in range(0, MESSAGES, SELECTED):
            for channel, bucket, ids in self.buckets:
                if self._stop.is_set():
                    return
                selection = choose(channel.id, message_ids=ids[start : start + SELECTED])
                purge = available(lambda: draft_purge(moderator=self.moderator, selection=selection))  # noqa: B023
                self._wait_while(purge, {PurgeState.SCANNING})
                self._confirm(purge)
                assert self._totals(purge) == (PurgeState.DONE, SELECTED, SELECTED), purge.state
                left = available(lambda: ids_of(channel, bucket))  # noqa: B023
                assert left == ids[start + SELECTED :], f"{len(left)} messages are left of {len(ids) - start} less ten"
                self.small += 1

    def _purge_scattered(self) -> None:
        for each in self.scattered:
            if self._stop.is_set():
                return
            self._confirm(each.purge)
            available(each.assert_purged)
            self.purged += 1
            available(lambda: self._request_undo(each.purge))  # noqa: B023
            self._wait_while(each.purge, {PurgeState.UNDOING})
            available(each.assert_undone)
            self.restored += 1

    def _confirm(self, purge: Purge) -> None:
        available(lambda: confirm(self.moderator, purge))
        self._wait_while(purge, {PurgeState.QUEUED, PurgeState.RUNNING, PurgeState.WAITING})

    def _request_undo(self, purge: Purge) -> None:
        purge.refresh_from_db()
        # A lost connection may have hidden that an attempt was committed.
        if purge.state == PurgeState.DONE:
            request_undo(purge.pk, moderator=self.moderator, part=UndoPart(), reason="Appeal accepted")

    def _totals(self, purge: Purge) -> tuple[str, int, int]:
        total = available(lambda: totals_of(purge))
        return purge.state, total.deleted, total.manifest

    def _wait_while(self, purge: Purge, states: Collection[PurgeState]) -> None:
        """Wait while the purge is in one of the states; fail once it has starved."""
        waited, at = 0.0, time.monotonic()
        while True:
            available(purge.refresh_from_db)
            if purge.state not in states:
                break
            time.sleep(POLL_SECONDS)
            now = time.monotonic()
            # A longer interval is one in which Postgres did not respond.
            waited += min(now - at, 1.0) if are_all_nodes_up() else 0.0
            at = now
            reason = f"purge {purge.pk} is still {purge.state} after {waited:.0f} s: {purge.wait_reason}"
            assert waited < STARVES_AFTER_SECONDS, reason
        self.longest = max(self.longest, waited)


def are_all_nodes_up() -> bool:
    """Return whether this process's session has every node as up: one that starts again is away for a while longer."""
    return all(is_up for _, is_up, _ in cassandra.hosts())


def arrange_second(moderator: User) -> SecondModerator:
    """Write the messages of the second moderator's channels, and preview the scattered purges."""
    buckets: list[tuple[Channel, int, list[int]]] = []
    for channel in [make_channel() for _ in range(CHANNELS)]:
        by_bucket = [old_ids(MESSAGES, buckets_ago=ago) for ago in range(2, 2 + BUCKETS)]
        write(channel, [message_id for ids in by_bucket for message_id in ids])
        buckets += [(channel, bucket_of(ids[0]), ids) for ids in by_bucket]
    scattered = [
        # Fresh nodes may be too slow for the traces of a first preview.
        available(lambda: preview_scattered(moderator, channels=SCATTERED_CHANNELS, buckets=SCATTERED_BUCKETS))
        for _ in range(SCATTERED)
    ]
    return SecondModerator(moderator, scattered, buckets)


def available(function: Callable[[], Result]) -> Result:
    """Repeat a function that may be repeated while Postgres or Cassandra is unavailable."""
    while True:
        try:
            return function()
        except (StoreUnavailable, Error):
            connection.close()
            time.sleep(0.2)
