"""A raid for tests: new accounts flood a channel in which old members go on talking."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass
from io import StringIO

from django.core.management import call_command

from chatstore.demo.raid import make_raiders, write_raid_text
from chatstore.domain.buckets import bucket_at, bucket_of
from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import YEAR_MS
from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, ChatUser, Finding
from chatstore.store import activity, authors, ledger, messages
from chatstore.store.reading.reader import MAX_PAGE_SIZE, read_page
from chatstore.store.redis import redis_client
from moderation.operations.raids.detection import RAID
from tests.moderation.channels import make_channel, now_ms, old_ids, recent_ids, write

MEMBERS = 6
GROUP_TEXT = "free coins at coins.example tonight"
"""Written by the new accounts of `write_groups`."""

WORDS = (
    "tonight steering anchor before nine leviathan really longboat please ready side left wave enormous hat lost "
    "saltmarsh repair mast dinner two more fog thicker since update crew harbour lantern oil compass north storm "
    "calm wind ropes knots deck cabin gull rock treasure map"
).split()


@dataclass(frozen=True, slots=True)
class Raid:
    """The raided channel, the messages of the raid and those of everybody else, ascending.

    members: who talked during the raid.
    """

    channel: Channel
    raid_ids: list[int]
    other_ids: list[int]
    raiders: frozenset[int]
    members: frozenset[int]


def write_raid(*, raiders: int = 12, each: int = 5, members: int = MEMBERS, apart_ms: int = 1_500) -> Raid:
    """Write a raid with a message every so often until now, and members who talk before it and meanwhile."""
    rng = random.Random(7)
    channel = make_channel(guild="Tidewalkers", name="general")
    raid_users, old_users = _make_users(raiders, members)
    count = raiders * each
    start_ms = now_ms() - apart_ms * count
    first_talk_ms = start_ms - 600_000
    raid = [
        Message(channel.pk, _message_id(start_ms + apart_ms * n), raid_users[n % raiders].pk, write_raid_text(rng))
        for n in range(count)
    ]
    talk_count = count // 4
    times = [first_talk_ms + 600_000 // talk_count * n for n in range(talk_count)]
    times += [start_ms + 4 * apart_ms * n for n in range(talk_count)]
    talk = [
        Message(channel.pk, _message_id(at), old_users[n % members].pk, " ".join(rng.sample(WORDS, 7)).capitalize())
        for n, at in enumerate(times)
    ]
    for user in old_users:
        _join_long_ago(user, channel)
    for message in (*raid, *talk):
        ledger.ensure_row(channel.pk, message.bucket)
        authors.ensure_author_bucket(message.author_id, channel.pk, bucket_of(message.message_id))
    messages.insert_messages([*raid, *talk], stamp_us=messages.posted_stamp)
    # At once: on a busy machine the statements above may take minutes.
    for _ in range(2 * len([*raid, *talk])):
        activity.note_post(channel.pk)
    return Raid(
        channel,
        sorted(message.message_id for message in raid),
        sorted(message.message_id for message in talk),
        frozenset(user.pk for user in raid_users),
        frozenset(user.pk for user in old_users),
    )


def write_groups(*, raiders: int = 4, members: int = 3) -> Raid:
    """Have new accounts write a text, and members of two years another one, all of them within five minutes."""
    channel = make_channel(guild="Tidewalkers", name="general")
    new, old = _make_users(raiders, members)
    for user in old:
        _join_long_ago(user, channel)
    ids: list[list[int]] = []
    for users, text in ((new, GROUP_TEXT), (old, "welcome aboard the harbour party")):
        ids.append([_message_id(now_ms() - 60_000 * (5 - number % 5)) for number in range(len(users))])
        for user, message_id in zip(users, ids[-1], strict=True):
            write(channel, [message_id], author=user.pk, content=text)
    found = (frozenset(user.pk for user in users) for users in (new, old))
    return Raid(channel, sorted(ids[0]), sorted(ids[1]), *found)


def join_group(raid: Raid, minutes_ago: float) -> int:
    """Have one more new account write the text of those of `write_groups`; return its ID."""
    ((late,), _) = _make_users(1, 0)
    write(raid.channel, recent_ids(1, minutes_ago=minutes_ago), author=late.pk, content=GROUP_TEXT)
    return late.pk


def post_raid() -> Raid:
    """Have `manage.py chatter` raid a channel as in the demonstration, with members who have been there for long."""
    channel = make_channel(guild="Tidewalkers", name="general")
    _, users = _make_users(0, MEMBERS)
    for number, user in enumerate(users):
        _join_long_ago(user, channel)
        write(channel, old_ids(2 * MEMBERS)[number::MEMBERS], author=user.pk)
    earlier = {message.message_id for message in read_page(channel.pk).messages}
    call_command("chatter", raid=True, seed=5, rate=50, seconds=1.6, channel=[channel.pk], json=True, stdout=StringIO())
    written = read_page(channel.pk, limit=MAX_PAGE_SIZE).messages
    old = {user.pk for user in users}
    return Raid(
        channel,
        sorted(message.message_id for message in written if message.author_id not in old),
        sorted(message.message_id for message in written if message.author_id in old),
        frozenset(message.author_id for message in written) - old,
        frozenset(message.author_id for message in written if message.message_id not in earlier) & old,
    )


def forget_raids() -> None:
    """Delete the findings, and the counts of posts that would open them again."""
    Finding.objects.filter(kind=RAID).delete()
    for key in redis_client().scan_iter("posts:*"):
        redis_client().delete(key)


def _join_long_ago(user: ChatUser, channel: Channel) -> None:
    authors.ensure_author_bucket(user.pk, channel.pk, bucket_at(now_ms() - 2 * YEAR_MS))


def _make_users(raiders: int, members: int) -> tuple[list[ChatUser], list[ChatUser]]:
    """Create accounts with ids that no other test uses."""
    made = make_raiders(random.Random(7), now_ms())[:raiders]
    new = [ChatUser(id=user.user_id ^ secrets.randbits(22), name=user.name) for user in made]
    names = ("Mika", "Ayla", "Jonas", "Priya", "Noor", "Sven")[:members]
    old = [
        ChatUser(id=_message_id(now_ms() - 3 * YEAR_MS), name=f"{name.lower()}_sails", display_name=name)
        for name in names
    ]
    ChatUser.objects.bulk_create([*new, *old])
    return new, old


def _message_id(ms: int) -> int:
    return make_snowflake(ms) | secrets.randbits(22)
