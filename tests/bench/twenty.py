"""Twenty moderators who purge at the same time, beside a large purge."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from django.db import connections

from moderation.domain.states import PurgeState
from moderation.models import Purge
from tests.bench.bench_stack import begin_purge, seconds_of_purge, wait_for
from tests.bench.channel_pool import ChannelPool, all_but_oldest, scan
from tests.bench.channels import empty_channel, fill_recent, make_guild, settle
from tests.bench.report import Figures
from tests.bench.small import SelectedMessages, make_moderator, sign_in
from tests.bench.timing import alternate

MODERATORS, GUILDS, MESSAGES = 20, 4, 50
"""Moderators, each in a channel of their own, the guilds of these channels, and the messages of one purge."""


@dataclass(frozen=True, slots=True)
class Together:
    """Seconds of a round: until all are confirmed, until all have ended, and of the large purge beside them."""

    confirmed: float
    ended: float
    large: float


def measure_twenty(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield the worst seconds from the first confirmation until the last of twenty purges has ended.

    Then how many times as long the large purge beside them takes as one of an equal channel alone.
    """
    pool.prepare_fresh(2 * runs)
    guilds = [make_guild() for _ in range(GUILDS)]
    channels = [empty_channel(guilds[number % GUILDS]) for number in range(MODERATORS)]
    clients = [sign_in(make_moderator()) for _ in channels]
    ids = [fill_recent(channel, MESSAGES * runs) for channel in channels]
    rounds: list[Together] = []

    def beside() -> float:
        selected = [
            SelectedMessages(client, channel.pk, here[MESSAGES * len(rounds) :][:MESSAGES])
            for client, channel, here in zip(clients, channels, ids, strict=True)
        ]
        rounds.append(purge_together(pool, selected))
        return rounds[-1].large

    def alone() -> float:
        return seconds_of_purge(pool.moderator, scan(pool.moderator, all_but_oldest(pool.fresh.pop(0))))

    sides = alternate(beside, alone, runs=runs, before=settle)
    yield "twenty_moderators_confirmed_seconds", max(each.confirmed for each in rounds)
    yield "twenty_moderators_seconds", max(each.ended for each in rounds)
    yield "twenty_moderators_slowdown", sides.time


def purge_together(pool: ChannelPool, selected: list[SelectedMessages]) -> Together:
    """Preview all the selections, begin a large purge, and confirm all previews once it runs."""
    previews = [(each, each.preview()) for each in selected]
    large = scan(pool.moderator, all_but_oldest(pool.fresh.pop(0)))
    large_began = time.perf_counter()
    begin_purge(pool.moderator, large)
    while large.state != PurgeState.RUNNING:
        large.refresh_from_db()
    began = time.perf_counter()
    with ThreadPoolExecutor(len(previews)) as threads:
        list(threads.map(confirm_in_thread, previews))
    confirmed = time.perf_counter() - began
    for _, purge in previews:
        wait_for(purge, PurgeState.DONE)
    ended = time.perf_counter() - began
    wait_for(large, PurgeState.DONE)
    return Together(confirmed, ended, large=time.perf_counter() - large_began)


def confirm_in_thread(preview: tuple[SelectedMessages, Purge]) -> None:
    """Confirm a preview on a Postgres connection that is closed afterwards."""
    selected, purge = preview
    try:
        selected.confirm(purge)
    finally:
        connections.close_all()
