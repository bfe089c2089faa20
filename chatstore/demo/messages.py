"""Messages of the demonstration: conversations by day and season, spam, a raid, a flood.

Each channel's messages are derived from the plan and the channel alone, so that channels can be generated one after the
other. Ids carry the times; none is after the plan's end.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chatstore.demo.plan import (
    DEMO_DAYS,
    RAID_MESSAGES,
    SPAM_MESSAGES,
    DemoChannel,
    DemoPlan,
    DemoUser,
)
from chatstore.demo.talk import (
    DISMAY_LINES,
    FLOOD_LINES,
    RAID_LINES,
    SPAM_LINES,
    THEMES,
    WORDS,
    Line,
)
from chatstore.domain.messages import DEFAULT_TYPE, REPLY_TYPE, Message
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS, MINUTE_MS
from chatstore.domain.snowflakes import SEQUENCES, make_snowflake

RAID_MS = 28 * MINUTE_MS
INCIDENT_DAYS = 48
FLOOD_SHARE = 0.94
WAVE_MESSAGES = 2_500
"""Messages per wave of a flood, posted without interruption."""

# Weights of the hours of a day, UTC: few at night, most in the evening.
_HOURS = (3, 2, 1, 1, 1, 2, 4, 8, 12, 14, 14, 15, 17, 15, 14, 14, 16, 19, 23, 26, 27, 23, 15, 8)


@dataclass(slots=True, eq=False)
class _Draft:
    """A message before it has an id."""

    ms: int
    author: DemoUser
    text: str
    reply_to: _Draft | None = None
    attachment: str | None = None
    reactions: dict[str, int] = field(default_factory=dict)
    edited_after_ms: int = 0
    pinned: bool = False
    message_id: int = 0


def make_channel_messages(plan: DemoPlan, channel: DemoChannel) -> list[Message]:
    """Return a channel's messages, oldest first, with the spam and the raid that reached it."""
    rng = random.Random(f"demo {plan.seed} {channel.guild} {channel.name}")
    if channel is plan.incident:
        drafts = _make_incident(plan, channel, rng)
    else:
        spam, raid = count_spam(plan)[channel.channel_id], count_raid(plan)[channel.channel_id]
        talk = share_messages(plan)[channel.channel_id]
        end_ms = plan.until_ms - channel.quiet_days * DAY_MS
        drafts = _make_talk(plan, channel, rng, count=talk, start_ms=_start_of(plan), end_ms=end_ms)
        drafts += _make_spam(plan, rng, spam)
        drafts += _make_raid(plan, channel, rng, raid)
    return _assign_ids(channel, drafts, worker=_worker_of(plan, channel))


def share_messages(plan: DemoPlan) -> dict[int, int]:
    """Return the number of conversation messages per channel; with spam and raid they add up to `plan.messages`."""
    extra = sum(count_spam(plan).values()) + sum(count_raid(plan).values())
    total = sum(channel.weight for channel in plan.channels)
    left = plan.messages - extra
    shares = {c.channel_id: left * c.weight // total for c in plan.channels}
    largest = max(plan.channels, key=lambda channel: channel.weight)
    shares[largest.channel_id] += left - sum(shares.values())
    return shares


def count_spam(plan: DemoPlan) -> dict[int, int]:
    """Return the number of spam messages per channel: the wave reaches every text channel that is still active."""
    scaled = SPAM_MESSAGES * plan.messages // 150_000
    reached = [c for c in plan.channels if not c.quiet_days and c.kind == "text"]
    counts = {c.channel_id: 0 for c in plan.channels}
    for index in range(scaled):
        counts[reached[index % len(reached)].channel_id] += 1
    return counts


def count_raid(plan: DemoPlan) -> dict[int, int]:
    """Return the number of raid messages per channel: all are in the general channel of the first guild."""
    target = next(c for c in plan.channels if c.guild == 0 and c.name == "general")
    scaled = RAID_MESSAGES * plan.messages // 150_000
    return {c.channel_id: scaled if c is target else 0 for c in plan.channels}


def _start_of(plan: DemoPlan) -> int:
    return plan.until_ms - DEMO_DAYS * DAY_MS


def _worker_of(plan: DemoPlan, channel: DemoChannel) -> int:
    return (*plan.channels, plan.incident).index(channel)


# --- Talk -----------------------------------------------------------------------------


def _make_talk(
    plan: DemoPlan,
    channel: DemoChannel,
    rng: random.Random,
    *,
    count: int,
    start_ms: int,
    end_ms: int,
) -> list[_Draft]:
    """Return exactly `count` messages of conversation between two times."""
    talks = [talk for theme in channel.themes for talk in THEMES[theme]]
    regulars = _pick_regulars(plan, channel, rng)
    chosen: list[tuple[Line, ...]] = []
    lines = 0
    while lines < count:
        talk = rng.choice(talks)[: count - lines]
        chosen.append(talk)
        lines += len(talk)
    drafts: list[_Draft] = []
    for talk in chosen:
        begin_ms = _pick_time_ms(rng, start_ms, end_ms)
        drafts += _make_conversation(talk, regulars, rng, begin_ms=begin_ms, end_ms=end_ms)
    for each in rng.sample(drafts, min(len(drafts) // 400 + 1, 12)) if drafts else ():
        each.pinned = True
    return drafts


def _pick_regulars(plan: DemoPlan, channel: DemoChannel, rng: random.Random) -> list[DemoUser]:
    """Return the channel's authors, the most active ones many times: some write every day, most rarely."""
    if "news" in channel.themes and len(channel.themes) == 1:
        return [plan.bots[1], *plan.people[:3]]
    circle = [p for index, p in enumerate(plan.people) if index % 3 == channel.guild or index % 17 == 0]
    members = rng.sample(circle, min(len(circle), 20 + channel.weight // 2))
    return [member for rank, member in enumerate(members) for _ in range(1 + 60 // (rank + 2))]


def _pick_time_ms(rng: random.Random, start_ms: int, end_ms: int) -> int:
    """Return a time in the interval: more often in the later days than in the first, by the hours of `_HOURS`."""
    share = 1 - (1 - math.sqrt(rng.random())) * 0.9 if rng.random() < 0.7 else rng.random()
    day_ms = (start_ms + int((end_ms - start_ms) * share)) // DAY_MS * DAY_MS
    hour = rng.choices(range(24), _HOURS)[0]
    time_ms = day_ms + hour * HOUR_MS + rng.randrange(HOUR_MS)
    if start_ms <= time_ms <= end_ms:
        return time_ms
    return max(start_ms, end_ms - rng.randrange(min(6 * HOUR_MS, end_ms - start_ms)))


def _make_conversation(
    talk: Sequence[Line], regulars: list[DemoUser], rng: random.Random, *, begin_ms: int, end_ms: int
) -> list[_Draft]:
    words = {key: rng.choice(choices) for key, choices in WORDS.items()}
    cast: dict[int, DemoUser] = {}
    drafts: list[_Draft] = []
    ms = begin_ms
    for line in talk:
        author = cast.get(line.speaker)
        while author is None or (line.speaker not in cast and author in cast.values() and len(regulars) > 9):
            author = rng.choice(regulars)
        cast[line.speaker] = author
        drafts.append(
            _Draft(
                ms,
                author,
                line.text.format_map(words),
                reply_to=drafts[-1] if line.is_reply and drafts else None,
                attachment=line.attachment,
                reactions=_pick_reactions(line.emoji, rng),
                edited_after_ms=rng.randrange(20_000, 900_000) if rng.random() < 0.03 else 0,
            )
        )
        ms += rng.randrange(4_000, 150_000)
    late = drafts[-1].ms - end_ms
    if late > 0:
        for each in drafts:
            each.ms -= late
    return drafts


def _pick_reactions(emoji: Sequence[str], rng: random.Random) -> dict[str, int]:
    return {each: rng.choice((1, 1, 2, 2, 3, 4, 6, 9)) for each in emoji if rng.random() < 0.75}


# --- Incidents -------------------------------------------------------------------------


def _make_spam(plan: DemoPlan, rng: random.Random, count: int) -> list[_Draft]:
    """Return one author's spam: two evenings six weeks ago, a few links an hour in every channel."""
    begin_ms = plan.until_ms - 43 * DAY_MS
    return [
        _Draft(
            begin_ms + rng.randrange(2) * DAY_MS + rng.randrange(5 * HOUR_MS),
            plan.spammer,
            rng.choice(SPAM_LINES).format(n=rng.randrange(10_000, 99_999)),
        )
        for _ in range(count)
    ]


def _make_raid(plan: DemoPlan, channel: DemoChannel, rng: random.Random, count: int) -> list[_Draft]:
    """Return the raid: forty new accounts within the last half hour, and a few regulars in between."""
    regulars = _pick_regulars(plan, channel, rng) if count else []
    drafts = []
    for _ in range(count):
        ms = plan.until_ms - MINUTE_MS - int(RAID_MS * rng.random() ** 1.5)
        if rng.random() < 0.02:
            drafts.append(_Draft(ms, rng.choice(regulars), rng.choice(DISMAY_LINES)))
        else:
            text = rng.choice(RAID_LINES).format(n=rng.randrange(1_000, 9_999))
            drafts.append(_Draft(ms, rng.choice(plan.raiders), text))
    return drafts


def _make_incident(plan: DemoPlan, channel: DemoChannel, rng: random.Random) -> list[_Draft]:
    """Return a party of seven weeks and one author's flood, in waves at night until a moderator noticed."""
    end_ms = plan.until_ms - 2 * DAY_MS
    start_ms = end_ms - INCIDENT_DAYS * DAY_MS
    flood = int(plan.incident_messages * FLOOD_SHARE)
    talk = _make_talk(plan, channel, rng, count=plan.incident_messages - flood, start_ms=start_ms, end_ms=end_ms)
    return talk + list(_make_flood(plan, rng, flood, start_ms=start_ms, end_ms=end_ms))


def _make_flood(plan: DemoPlan, rng: random.Random, count: int, *, start_ms: int, end_ms: int) -> Iterator[_Draft]:
    waves = max(1, count // WAVE_MESSAGES)
    begins = sorted(rng.randrange(start_ms, end_ms - HOUR_MS) for _ in range(waves))
    for index, begin_ms in enumerate(begins):
        ms = begin_ms
        size = count // waves + (count % waves if index == 0 else 0)
        for _ in range(size):
            # Eight a second: a wave ends within minutes, before people answer.
            ms += rng.randrange(60, 190)
            number = rng.randrange(100_000, 999_999)
            yield _Draft(ms, plan.flooder, rng.choice(FLOOD_LINES).format(n=number))


# --- Messages -------------------------------------------------------------------------


def _assign_ids(channel: DemoChannel, drafts: list[_Draft], *, worker: int) -> list[Message]:
    """Assign ids in order of time. Sequence numbers distinguish messages of the same millisecond."""
    drafts.sort(key=lambda each: each.ms)
    for index, each in enumerate(drafts):
        each.message_id = make_snowflake(each.ms, worker=worker, sequence=index % SEQUENCES)
    drafts.sort(key=lambda each: each.message_id)
    return [_to_message(channel, each) for each in drafts]


def _to_message(channel: DemoChannel, draft: _Draft) -> Message:
    reply = draft.reply_to
    edited_ms = draft.ms + draft.edited_after_ms
    return Message(
        channel_id=channel.channel_id,
        message_id=draft.message_id,
        author_id=draft.author.user_id,
        content=draft.text,
        type=REPLY_TYPE if reply else DEFAULT_TYPE,
        edited_at=dt.datetime.fromtimestamp(edited_ms / 1000, dt.UTC) if draft.edited_after_ms else None,
        pinned=draft.pinned,
        attachments=(_attach(draft.attachment, draft.message_id),) if draft.attachment else (),
        reactions=draft.reactions,
        reference=(channel.channel_id, reply.message_id) if reply else None,
    )


def _attach(filename: str, message_id: int) -> str:
    """Return an attachment in Discord's format; its size is derived from the message id."""
    size = 20_000 + message_id % 3_000_000
    url = f"https://files.example/{message_id}/{filename}"
    return json.dumps({"id": str(message_id), "filename": filename, "size": size, "url": url})
