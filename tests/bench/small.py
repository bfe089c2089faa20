"""Ten messages selected on a page: alone, and beside a large purge and the preview of a guild."""

from __future__ import annotations

import math
import secrets
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connections
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models.users import User
from chatstore.store.reading.reader import read_page
from moderation.domain.filters import Words
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.management.demo_accounts import set_roles
from moderation.models import Purge
from moderation.operations.purging.lifecycle import draft_purge
from moderation.tasks import enqueue_scan
from tests.bench.bench_stack import begin_purge, wait_for, wait_for_scan
from tests.bench.channel_pool import ChannelPool
from tests.bench.channels import empty_channel, fill_recent, settle
from tests.bench.report import Figures
from tests.moderation.channels import choose

SELECTED = 10
SMALL_RUNS = 30
RECENT = 2_000
"""Messages of the last hour in the channel in which ten are selected."""

RUNS_BESIDE, FEWEST_RUNS_BESIDE = 20, 8
BESIDE_SECONDS = 60.0
"""Purges beside the large one: so many, or as many as there is time for."""


@dataclass(frozen=True, slots=True)
class SelectedMessages:
    """Messages of a channel that a moderator has selected on its page."""

    client: Client
    channel_id: int
    ids: Sequence[int]

    def preview(self) -> Purge:
        """Post the selection, and open the purge's page once it shows the preview."""
        selected = {"selected": "1", "message_id": list(map(str, self.ids))}
        url = self.client.post(f"/channels/{self.channel_id}/delete/", selected)["Location"]
        purge = Purge.objects.get(pk=int(url.split("/")[2]))
        wait_for_scan(purge)
        if f"Delete {len(self.ids)} messages" not in self.client.get(url).content.decode():
            raise RuntimeError("the preview cannot be confirmed")
        return purge

    def confirm(self, purge: Purge) -> None:
        """Confirm the preview."""
        manifest_hash = bytes(purge.manifest_hash or b"").hex()
        self.client.post(f"/purges/{purge.pk}/confirm/", {"reason": "bench", "manifest_hash": manifest_hash})

    def purge(self) -> tuple[float, float]:
        """Return the seconds until the preview is shown, and from its confirmation until the messages are gone."""
        began = time.perf_counter()
        purge = self.preview()
        previewed = time.perf_counter() - began
        began = time.perf_counter()
        self.confirm(purge)
        while {message.message_id for message in read_page(self.channel_id).messages}.intersection(self.ids):
            time.sleep(0.01)
        gone = time.perf_counter() - began
        wait_for(purge, PurgeState.DONE)
        return previewed, gone


def sign_in(user: User) -> Client:
    """Return a client that is signed in."""
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    return client


def make_moderator() -> User:
    """Create an account of the group of moderators."""
    user = User.objects.create_user(f"bench-{secrets.token_hex(6)}", is_staff=True)
    set_roles(user, (Role.MODERATOR, Role.DIRECT))
    return user


def select_small(moderator: User, *, runs: int) -> Iterator[SelectedMessages]:
    """Yield the newest ten messages of a channel, then the ten before them, and so on."""
    client, channel = sign_in(moderator), empty_channel()
    ids = fill_recent(channel, RECENT)
    for run in range(runs):
        yield SelectedMessages(client, channel.pk, ids[-SELECTED * (run + 1) : len(ids) - SELECTED * run])


def measure_small(moderator: User) -> Figures:
    """Yield the seconds of selecting ten messages on a page: until the preview is shown, and until they are gone."""
    taken = [selected.purge() for selected in select_small(moderator, runs=SMALL_RUNS)]
    yield "small_preview_seconds", statistics.median(preview for preview, _ in taken)
    yield "small_purge_seconds", statistics.median(purge for _, purge in taken)


def measure_small_beside(pool: ChannelPool) -> Figures:
    """Yield the p95 of the same while a purge of a large channel and the preview of a guild run.

    Only purges that began while the large one ran are counted. Reading the page throttles the large one.
    """
    guild = pool.scattered.guild
    pool.prepare_busy(2)
    settle()
    taken: list[tuple[float, float]] = []
    end = time.monotonic() + BESIDE_SECONDS
    with repeated(lambda: purge_large(pool)) as purging, repeated(lambda: preview_guild(pool.moderator, guild.pk)):
        for selected in select_small(make_moderator(), runs=RECENT // SELECTED):
            if len(taken) == RUNS_BESIDE or time.monotonic() > end:
                break
            while purging() is None:
                time.sleep(0.02)
            taken.append(selected.purge())
    if len(taken) < FEWEST_RUNS_BESIDE:
        raise RuntimeError(f"only {len(taken)} purges while the large one ran")
    yield "small_preview_beside_p95_seconds", p95(preview for preview, _ in taken)
    yield "small_purge_beside_p95_seconds", p95(purge for _, purge in taken)
    yield "small_purge_beside_median_seconds", statistics.median(purge for _, purge in taken)


def p95(values: Iterator[float]) -> float:
    """Return the smallest value that at least 95 % of the values don't exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(0.95 * len(ordered)) - 1]


def purge_large(pool: ChannelPool) -> Iterator[Purge]:
    """Purge a large channel; yield the purge when it has begun."""
    pool.prepare_busy(1)
    purge = draft_purge(moderator=pool.moderator, selection=choose(pool.take_busy().channel.pk, everything=True))
    enqueue_scan(purge.pk)
    wait_for_scan(purge)
    begin_purge(pool.moderator, purge)
    yield purge
    wait_for(purge, PurgeState.DONE)


def preview_guild(moderator: User, guild_id: int) -> Iterator[Purge]:
    """Preview a purge of a guild for which all of its messages are read, and none matches."""
    purge = draft_purge(moderator=moderator, selection=Selection(guild_id=guild_id, where=Words("xylophone")))
    enqueue_scan(purge.pk)
    yield purge
    wait_for_scan(purge)


@contextmanager
def repeated(work: Callable[[], Iterator[Purge]]) -> Iterator[Callable[[], Purge | None]]:
    """Repeat some work in a thread until the context ends; yield a function for the purge in progress, if any.

    The purge in progress is completed before the context is left. The function raises what the work raised.
    """
    stop = threading.Event()
    current: list[Purge] = []
    errors: list[Exception] = []

    def repeat() -> None:
        try:
            while not stop.is_set():
                for purge in work():
                    current[:] = [purge]
                current.clear()
        except Exception as error:  # noqa: BLE001 - it is raised where the part is measured
            errors.append(error)
        finally:
            current.clear()
            connections.close_all()

    def in_progress() -> Purge | None:
        if errors:
            raise errors[0]
        return next(iter(current), None)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield in_progress
        in_progress()
    finally:
        stop.set()
        thread.join()
