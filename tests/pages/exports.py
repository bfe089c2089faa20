"""Small exports in the format of DiscordChatExporter: an ordinary channel and a hostile one."""

from __future__ import annotations

import datetime as dt
import json
import random
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatstore.domain.snowflakes import make_snowflake, time_of, unix_ms

Json = dict[str, Any]

CHAT_LINES = (
    "Has anybody tried the new ferry timetable? The 7:40 was **on time** three days in a row.",
    "I put the minutes of Tuesday's meeting into the shared folder.",
    "The north pier is closed until Friday, see https://harbour.example/notices/118",
    "Thanks, that helped a lot!",
    "Does `tide --next` work for you? Mine says *unknown station* since the update.",
    "Same here. Restarting it did the trick.",
    "Lunch at the usual place?",
    "Count me in 🙂",
    "Could somebody review the rota for next week? I swapped Thursday with Ines.",
    "> The north pier is closed until Friday\nOnly the upper deck, the lower one is open.",
    "Reminder: the photo competition ends on Sunday. So far 14 entries.",
    "```\n$ tide --next lisbon\n14:07  high  3.4 m\n20:21  low   0.6 m\n```",
    "### Rota\n- Monday: **Ines**, __Tomás__\n- Tuesday: ||a surprise||\n-# Swaps: [list](https://harbour.example/rota)",
    "I would rather move it to the afternoon, if that is all right for everybody.",
    "Good morning from a very foggy harbour.",
)
SPAM = (
    "🔥 FREE coins for the first 100!! https://c0ins.example/claim?ref=victor",
    "Cheap followers, DM me. https://c0ins.example/f",
    "last chance!!! claim now -> https://c0ins.example/claim",
)


@dataclass(frozen=True, slots=True)
class SampleExport:
    """An imported channel: its id and its guild's, its users, and the number of spam messages by Victor."""

    channel_id: int
    guild_id: int
    victor: int
    people: dict[str, int]
    messages: int
    spam: int
    spam_began: dt.datetime
    path: Path


def write_sample_export(
    folder: Path,
    *,
    until: dt.datetime,
    spam: int = 1204,
    days: int = 420,
    name: str = "general",
    beside: SampleExport | None = None,
) -> SampleExport:
    """Write a channel with some 1,900 ordinary messages, and a spam wave by Victor 60 days ago.

    beside: a channel of the same guild, with the same people.
    """
    dice = random.Random(11)
    names = ("Ines", "Tomás", "Wilma", "Priya", "Jonas", "Aiko")
    people = {name: _fresh_id(until - dt.timedelta(days=days + 90 + n)) for n, name in enumerate(names)}
    victor = _fresh_id(until - dt.timedelta(days=61))
    if beside is not None:
        people, victor = beside.people, beside.victor
    times = _chat_times(until, days=days, dice=dice)
    chat = list(_chat_messages(times, people, dice))
    began = until - dt.timedelta(days=60)
    wave = [_message(began + dt.timedelta(seconds=40 * n), "Victor", victor, SPAM[n % 3]) for n in range(spam)]
    channel_id = _fresh_id(until - dt.timedelta(days=days + 30))
    guild_id = _guild_id(channel_id) if beside is None else beside.guild_id
    wanted = sorted([*chat, *wave], key=lambda m: int(m["id"]))
    path = _write(folder, channel_id, name, wanted, guild_id=guild_id, guild="Harbour Watch")
    return SampleExport(channel_id, guild_id, victor, people, len(chat) + spam, spam, began, path)


def write_hostile(folder: Path, *, until: dt.datetime) -> tuple[int, Path]:
    """Write a channel in which every user-controlled field attacks the page."""
    mallory = "<img src=x onerror=alert(1)>\u202egnp.exe"
    contents = (
        "<script>alert('content')</script><style>*{display:none}</style>",
        "\u202e reversed \u2066 isolated, never closed",
        "a NUL \x00 and a bell \x07 and an escape \x1b[31m",
        "\N{PARTY POPPER}" * 2000,
        "w" * 9000,
        "**" * 500 + "`" * 501 + "~~" * 333,
        'javascript:alert(1) [x](javascript:alert(1)) https://ok.example/"onmouseover=alert(1)',
        "https://user:pass@evil.example:99999/?q=</a><script>alert(1)</script>",
        "Z" + "\u0335\u0322\u0354\u036e" * 300,
        "\n" * 400 + "end of many lines",
        "https://e.example/\u202egpj.exe https://exam\u00adple.example/\x9b\u2066",
        "{{ 7|add:7 }} {% now 'Y' %} <@1> <#2> <:blob:3> <t:99999999999999>",
        "",
    )
    messages = []
    for number, content in enumerate(contents):
        time = until - dt.timedelta(days=40, minutes=-number)
        message = _message(time, mallory, 666_000_000_000_001 + number % 2, content)
        message["attachments"] = [
            {"id": "1", "url": "javascript:alert(1)", "fileName": "<b>\u202egpj.exe", "fileSizeBytes": -5}
        ]
        message["embeds"] = [
            {"title": "<i>title</i>", "url": "data:text/html,<script>alert(1)</script>", "description": "</div><h1>"},
            {"title": "there", "url": "https://e.example/\u202egpj.exe"},
        ]
        message["reactions"] = [{"emoji": {"id": "", "name": "<u>", "code": "x"}, "count": 3}]
        messages.append(message)
    channel_id = _fresh_id(until - dt.timedelta(days=100))
    path = _write(
        folder, channel_id, "<h1>hostile</h1>\u202e", messages, guild_id=_guild_id(channel_id), guild="Quarry Club"
    )
    return channel_id, path


def _chat_times(until: dt.datetime, *, days: int, dice: random.Random) -> list[dt.datetime]:
    times = []
    for day in range(days, 0, -1):
        # Some weeks are silent, some days are busy, so that the activity strip has a shape.
        lively = 0 if day % 97 in range(11, 24) else dice.choice((0, 1, 2, 3, 4, 6, 12))
        time = until - dt.timedelta(days=day, hours=dice.random() * 6)
        for _ in range(lively):
            time += dt.timedelta(minutes=dice.choice((1, 1, 2, 4, 9, 55)), seconds=dice.random() * 50)
            times.append(time)
    times += [until - dt.timedelta(minutes=minutes) for minutes in (190, 187, 186, 150, 118, 117, 90, 86, 80, 75)]
    return sorted(time for time in times if time < until)


def _chat_messages(times: list[dt.datetime], people: dict[str, int], dice: random.Random) -> Iterator[Json]:
    above: Json | None = None
    for number, time in enumerate(times):
        name = dice.choice(list(people))
        message = _message(time, name, people[name], CHAT_LINES[(number * 5 + dice.randrange(3)) % len(CHAT_LINES)])
        if number % 9 == 4 and above:
            message |= {"type": "Reply", "reference": {"messageId": above["id"]}}
        if number % 11 == 3:
            message["reactions"] = [
                {"emoji": {"id": "", "name": "👍", "code": "thumbsup"}, "count": 2 + number % 5},
                {"emoji": {"id": "", "name": "⚓", "code": "anchor"}, "count": 1},
            ]
        if number % 23 == 7:
            message["attachments"] = [
                {
                    "id": str(number),
                    "url": "https://files.example/pier.jpg",
                    "fileName": "north-pier.jpg",
                    "fileSizeBytes": 482_133,
                    "width": 1920,
                    "height": 1080,
                }
            ]
        if number % 31 == 5:
            message["embeds"] = [
                {
                    "title": "Notice 118: works on the north pier",
                    "url": "https://harbour.example/notices/118",
                    "description": "The upper deck is closed until Friday noon. Boats moor at the south pier.",
                }
            ]
        if number % 17 == 6:
            message["timestampEdited"] = (time + dt.timedelta(minutes=3)).isoformat()
        message["isPinned"] = number % 61 == 9
        if number % 41 == 13:
            message["author"] = {"id": "900000000000000001", "name": "Tide bot", "isBot": True, "discriminator": "4471"}
        above = message
        yield message


def _message(time: dt.datetime, name: str, author_id: int, content: str) -> Json:
    message_id = make_snowflake(unix_ms(time), worker=3)
    return {
        "id": str(message_id),
        "type": "Default",
        "timestamp": time_of(message_id).isoformat(),
        "content": content,
        "author": {"id": str(author_id), "name": name, "discriminator": "0000", "isBot": False},
    }


def _guild_id(channel_id: int) -> int:
    return channel_id - (5 << 22)


def _write(folder: Path, channel_id: int, name: str, messages: list[Json], *, guild_id: int, guild: str) -> Path:
    path = folder / f"{channel_id}.json"
    export = {
        "guild": {"id": str(guild_id), "name": guild},
        "channel": {
            "id": str(channel_id),
            "type": "GuildTextChat",
            "category": "Piers",
            "name": name,
            "topic": "Everything about the harbour, and then some.",
        },
        "messages": messages,
        "messageCount": len(messages),
    }
    path.write_text(json.dumps(export), encoding="utf-8")
    return path


def _fresh_id(time: dt.datetime) -> int:
    return make_snowflake(unix_ms(time)) | secrets.randbits(22)
