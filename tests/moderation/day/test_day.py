"""A moderator's day: three people make thirty purges of a community's messages, undo two, and stop a raid.

One of them is a moderator, one a lead, who may lift holds, and one an administrator.

Everything goes through the pages and real workers at their default settings. After every round exactly the right
messages are there. The times are printed, and not checked: they depend on the machine.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections

from chatstore.celery import app
from chatstore.models import Channel
from moderation.domain.states import PurgeState
from moderation.models import Hold
from tests.conftest import make_user
from tests.moderation.channels import recent_ids, write
from tests.moderation.day.community import Community, Posted, import_community, make_community
from tests.moderation.day.people import Finished, Moderator, Order, Orders, assert_live
from tests.moderation.faults.real_workers.separate_database import separate_database
from tests.moderation.faults.real_workers.workers import Workers

pytestmark = pytest.mark.slow

RAIDED = ("pyscript-core", "python-help", "pyscript-bugs")
RAID, ACCOUNTS = 3_000, 50

Choice = Callable[[Orders], Order]

ROUNDS: Sequence[tuple[Choice, Choice, Choice]] = (
    (
        lambda orders: orders.selected("pyscript-bugs"),
        lambda orders: orders.by(13),
        lambda orders: orders.selected("pyscript-docs", count=3),
    ),
    (
        lambda orders: orders.by(25),
        lambda orders: orders.by(5, "pyscript-core"),
        lambda orders: orders.selected("pyscript-ltk"),
    ),
    (
        lambda orders: orders.selected("tutorial", count=1),
        lambda orders: orders.links_by(3),
        lambda orders: orders.by(14),
    ),
    (
        lambda orders: orders.by(18),
        lambda orders: orders.selected("found-this", count=5),
        lambda orders: orders.by(2, "python-help"),
    ),
    (
        lambda orders: orders.by(30),
        lambda orders: orders.by(12),
        lambda orders: orders.selected("i-made-this", page=4),
    ),
    (
        lambda orders: orders.attachments_in("pyscript-dot-com"),
        lambda orders: orders.by(7, "pyscript-collective"),
        lambda orders: orders.selected("python-help", count=50),
    ),
    (
        lambda orders: orders.selected("tech-cross-chat", count=2),
        lambda orders: orders.whole("tutorial-dump"),
        lambda orders: orders.by(19, "pyscript-core"),
    ),
    (
        lambda orders: orders.links_by(4),
        lambda orders: orders.selected("pyscript-dot-com", count=20),
        lambda orders: orders.by(35),
    ),
    (
        lambda orders: orders.by(1),
        lambda orders: orders.selected("invent-framework", count=10),
        lambda orders: orders.by(45),
    ),
    (
        lambda orders: orders.advertisements(),
        lambda orders: orders.selected("queries-you-faced", page=0, count=1),
        lambda orders: orders.whole("tech-cross-chat"),
    ),
)
"""The orders of three people, who act at the same time, round by round. No two orders of a round share a message."""


WORKERS = 2
"""As many as `make run` starts."""


@pytest.fixture
def workers(_open_databases: None, tmp_path: Path) -> Iterator[None]:
    """Workers, as many as a default installation has, and beat, which receive what the pages enqueue."""
    with separate_database("chatstore_day_test"):
        app.control.purge()
        environment = {"REDIS_URL": settings.REDIS_URL, "BEAT_POLL_SECONDS": str(settings.BEAT_POLL_SECONDS)}
        running = Workers(tmp_path, count=WORKERS, environment=environment)
        try:
            running.start()
            yield
        finally:
            running.stop()


def test_every_purge_of_a_day_deletes_exactly_what_its_preview_showed(
    workers: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = [Moderator(make_user(name, group=group)) for name, group in (("mona", "moderators"), ("lena", "leads"))]
    people.append(Moderator(make_user("ada", group="admins")))
    community = make_community()
    (folder := tmp_path / "export").mkdir()
    import_community(community, folder)
    live = community.messages
    finished: list[Finished] = []
    for choices in ROUNDS:
        orders = apart([choice(Orders(community, live)) for choice in choices])
        finished += together([(person, order) for person, order in zip(people, orders, strict=True)])
        live = live.difference(*(order.expected for order in orders))
        assert_live(community, live)
    assert len(finished) == 30

    mona, lena, _ = people
    everywhere = next(each for each in finished if each.order.title == "author 12 everywhere")
    restored, undo_seconds = lena.undo(everywhere)
    live |= restored
    assert_live(community, live)
    in_guild = next(each for each in finished if each.order.title == "a word in the guild")
    restored, part_seconds = mona.undo(in_guild, channel_id=community.channels["pyscript-core"])
    assert 0 < len(restored) < len(in_guild.order.expected)
    assert in_guild.purge.state == PurgeState.PARTLY_UNDONE
    live |= restored
    assert_live(community, live)

    complaint = purge_after_hold(mona, lena, Orders(community, live).by(40))
    live -= complaint.order.expected
    assert_live(community, live)

    with_raid, raid = raided(community)
    stopped = mona.purge(raid)
    assert_live(with_raid, live | (with_raid.messages - community.messages - raid.expected))

    lines = [format_line(each) for each in [*finished, complaint, stopped]]
    lines += [format_times("preview", [each.preview_seconds for each in finished])]
    lines += [format_times("confirm to done", [each.purge_seconds for each in finished])]
    lines += [f"undo of {len(everywhere.order.expected)} {undo_seconds:.2f} s, of {len(restored)} {part_seconds:.2f} s"]
    with capsys.disabled():
        print("", *lines, sep="\n")


def purge_after_hold(moderator: Moderator, lead: Moderator, order: Order) -> Finished:
    """Purge an author's messages that a lead holds at first: the preview is empty until the lead lifts the hold."""
    author = str(next(iter(order.expected)).author)
    lead.post("/holds/", {"user": author, "reason": "a complaint"})
    assert moderator.preview(order).state == PurgeState.NOTHING_MATCHED
    lift = f"/holds/{Hold.objects.get(author_id=int(author)).pk}/lift/"
    moderator.post(lift, {}, status=403)
    lead.post(lift, {"reason": "The case is closed"})
    return moderator.purge(order)


def together(orders: Sequence[tuple[Moderator, Order]]) -> list[Finished]:
    """Let each person make their purge, all at the same time."""

    def purge(person: Moderator, order: Order) -> Finished:
        try:
            return person.purge(order)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(orders)) as threads:
        return list(threads.map(purge, *zip(*orders, strict=True)))


def apart(orders: Sequence[Order]) -> Sequence[Order]:
    """Check that every order deletes something and that no two share a message; return them."""
    titles = [order.title for order in orders]
    assert all(order.expected for order in orders), titles
    assert sum(len(order.expected) for order in orders) == len(frozenset().union(*(o.expected for o in orders))), titles
    return orders


def raided(community: Community) -> tuple[Community, Order]:
    """Write a raid of fifty accounts among others' talk in three channels; return it with the order that stops it."""
    added: list[Posted] = []
    for name in RAIDED:
        channel = Channel.objects.get(id=community.channels[name])
        ids = recent_ids(2 * RAID // len(RAIDED), minutes_ago=15, apart_ms=300)
        for account in range(ACCOUNTS):
            author, theirs = community.author(500 + account), ids[::2][account::ACCOUNTS]
            write(channel, theirs, author=author, content="free tokens at")
            added += [Posted(channel.id, message_id, author, "") for message_id in theirs]
        talk = ids[1::2]
        write(channel, talk, author=community.author(1), content="what is going on at")
        added += [Posted(channel.id, message_id, community.author(1), "") for message_id in talk]
    raid = frozenset(message for message in added if message.author != community.author(1))
    authors = ", ".join(sorted({str(message.author) for message in raid}))
    form = {"guild": str(community.guild_id), "after": "20 minutes ago", "authors": authors}
    with_raid = Community(
        community.guild_id, community.first_author, community.channels, community.messages.union(added)
    )
    return with_raid, Order(f"raid of {ACCOUNTS} accounts", "/delete/", form, raid)


def format_line(finished: Finished) -> str:
    """Return the times of a purge as a line."""
    channels = len({message.channel_id for message in finished.order.expected})
    return (
        f"{finished.order.title:34} {len(finished.order.expected):6,} in {channels:2} channels, "
        f"{finished.purge.steps.count():4} steps: preview {finished.preview_seconds:6.2f} s, "
        f"confirm to done {finished.purge_seconds:6.2f} s"
    )


def format_times(title: str, seconds: Sequence[float]) -> str:
    """Return median and p95 as a line."""
    p95 = sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]
    return f"{title}: median {statistics.median(seconds):.2f} s, p95 {p95:.2f} s"
