"""Guilds, channels and people of the demonstration.

Everything is derived from a seed and an end time. Guild ids depend on the seed alone, so that an existing demonstration
is recognized; channels and people are as old as the two years of the demonstration require.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass

from chatstore.domain.milliseconds import DAY_MS, HOUR_MS
from chatstore.domain.snowflakes import SEQUENCES, make_snowflake, time_of, unix_ms

DEMO_DAYS = 730
MESSAGES = 150_000
INCIDENT_MESSAGES = 200_000

SPAM_MESSAGES = 900
RAID_MESSAGES = 1_200
RAIDERS = 40

_GUILDS_MADE = unix_ms(dt.datetime(2021, 3, 1, 12, tzinfo=dt.UTC))

GUILDS = ("Tidewalkers", "Crumb Society", "Northside Makers")

_FIRST_NAMES = (
    "Mika Jonas Ayla Priya Tomas Ines Noor Sven Lotte Kofi Yuki Rosa Emil Zoe Malik Freya Hugo Leila Otis "
    "Nadia Pavel Maeve Idris Chiara Bram Suki Anders Tova Rafael Mina Theo Esra Luka Jun Petra Omar Wren "
    "Dario Asha Felix Greta Ivo Salma Kai Nell Bruno Vera Milo Hana Arlo Signe Tariq Elif Ronan Maya"
).split()
_HANDLE_ENDS = (
    "bakes builds sails writes paints .dev _at_sea 42 _online the_second codes makes _reads _outside tides "
    "_bikes _brews hums .wav _knits"
).split()
_RAIDER_NAME_PARTS = "wave tide surge swell foam crest storm drift".split()


@dataclass(frozen=True, slots=True)
class DemoUser:
    """A chat user."""

    user_id: int
    name: str
    display_name: str
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class DemoChannel:
    """A channel, its topics, and its share of all messages.

    quiet_days: days since the last message; 0 for an active channel.
    """

    channel_id: int
    guild: int
    name: str
    kind: str
    category: str
    topic: str
    themes: tuple[str, ...]
    weight: int
    quiet_days: int = 0


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """A demonstration without its messages. `until_ms`: the end of it, in Unix milliseconds."""

    seed: int
    until_ms: int
    guild_ids: tuple[int, ...]
    channels: tuple[DemoChannel, ...]
    incident: DemoChannel
    people: tuple[DemoUser, ...]
    bots: tuple[DemoUser, ...]
    spammer: DemoUser
    flooder: DemoUser
    raiders: tuple[DemoUser, ...]
    messages: int = MESSAGES
    incident_messages: int = INCIDENT_MESSAGES

    @property
    def users(self) -> tuple[DemoUser, ...]:
        """All authors."""
        return (*self.people, *self.bots, self.spammer, self.flooder, *self.raiders)


# guild, name, kind, category, topic, themes, weight, days of silence
_CHANNELS = (
    (0, "announcements", "news", "Harbour", "News from the crew. Read only.", "news", 3, 0),
    (0, "general", "text", "Harbour", "Everything that floats.", "general game", 190, 0),
    (0, "crew-finder", "text", "Harbour", "Say when, where and how many.", "game", 120, 0),
    (0, "strategy", "text", "On board", "Winds, routes, what beat which boss.", "game", 110, 0),
    (0, "bug-reports", "text", "On board", "One report, one message. Versions help.", "bugs", 70, 0),
    (0, "fan-art", "text", "On board", "Pictures, papercraft, songs.", "art", 60, 0),
    (0, "evening-voyages", "voice", "Voice", "", "game general", 25, 0),
    (0, "regatta-2024", "text", "Archive", "The first regatta.", "game news", 18, 420),
    (1, "general", "text", "Kitchen", "Bread and everything around it.", "general bread", 150, 0),
    (1, "show-your-loaf", "text", "Kitchen", "No loaf too small.", "bread", 130, 0),
    (1, "starter-clinic", "text", "Kitchen", "We have all been there.", "starter", 80, 0),
    (1, "recipes", "text", "Kitchen", "The good ones are pinned.", "bread", 60, 0),
    (1, "equipment", "text", "Pantry", "Scales, tins, ovens; selling and asking.", "gear", 35, 0),
    (1, "meetups", "text", "Pantry", "Who is where.", "meetup", 20, 0),
    (1, "the rye thread", "thread", "show-your-loaf", "", "bread starter", 12, 0),
    (1, "winter-market-2024", "text", "Archive", "Stall plans and shifts.", "meetup gear", 10, 300),
    (2, "general", "text", "Workshop", "The long table.", "general code", 140, 0),
    (2, "introductions", "text", "Workshop", "Say hi.", "introductions", 20, 0),
    (2, "electronics", "text", "Benches", "Blinking and beyond.", "electronics", 100, 0),
    (2, "3d-printing", "text", "Benches", "First layers, last layers.", "printing", 80, 0),
    (2, "woodwork", "text", "Benches", "Mind your fingers.", "gear printing", 45, 0),
    (2, "code-corner", "text", "Benches", "Small programs, big opinions.", "code", 90, 0),
    (2, "lost-and-found", "text", "Archive", "Moved to the board by the door.", "gear", 6, 210),
    (2, "roof-garden-plans", "text", "Archive", "It was a nice plan.", "meetup electronics", 8, 560),
)
_INCIDENT = (0, "launch-party", "text", "Harbour", "Version 2.0 is coming: count down with us!", "game general", 0, 0)


def plan_demo(
    seed: int, until: dt.datetime, *, messages: int = MESSAGES, incident_messages: int = INCIDENT_MESSAGES
) -> DemoPlan:
    """Return the plan, which is the same for the same seed and end time. Pass lower counts for smaller
    demonstrations.
    """
    rng = random.Random(f"demo {seed}")
    until_ms = unix_ms(until)
    start_ms = until_ms - DEMO_DAYS * DAY_MS
    channels = [_make_channel(each, index, start_ms, seed) for index, each in enumerate((*_CHANNELS, _INCIDENT))]
    taken: set[str] = set()
    people = tuple(_make_person(rng, number, start_ms, taken) for number in range(360))
    return DemoPlan(
        seed=seed,
        until_ms=until_ms,
        guild_ids=tuple(make_snowflake(_GUILDS_MADE + rng.randrange(30 * DAY_MS), worker=index) for index in range(3)),
        channels=tuple(channels[:-1]),
        incident=channels[-1],
        people=people,
        bots=(
            DemoUser(make_snowflake(start_ms, worker=901), "harbour-bot", "Harbour Bot", is_bot=True),
            DemoUser(make_snowflake(start_ms, worker=902), "build-status", "Build status", is_bot=True),
        ),
        spammer=DemoUser(make_snowflake(until_ms - 61 * DAY_MS, worker=903), "victor.deals", "Victor"),
        flooder=DemoUser(make_snowflake(until_ms - 70 * DAY_MS, worker=904), "gift_gull", "Gift Gull"),
        raiders=tuple(_make_raider(rng, number, until_ms) for number in range(RAIDERS)),
        messages=messages,
        incident_messages=incident_messages,
    )


def end_of_demo(channel_id: int) -> dt.datetime:
    """Return the end time of the demonstration that a channel belongs to."""
    return time_of(channel_id) + dt.timedelta(hours=1, days=DEMO_DAYS)


def _make_channel(
    row: tuple[int, str, str, str, str, str, int, int], index: int, start_ms: int, seed: int
) -> DemoChannel:
    guild, name, kind, category, topic, themes, weight, quiet_days = row
    # An hour before the first message, with a distinct worker each: no two channels share an id, and
    # neither do channels of different seeds.
    channel_id = make_snowflake(start_ms - HOUR_MS, worker=index, sequence=seed % SEQUENCES)
    return DemoChannel(channel_id, guild, name, kind, category, topic, tuple(themes.split()), weight, quiet_days)


def _make_person(rng: random.Random, number: int, start_ms: int, taken: set[str]) -> DemoUser:
    first = rng.choice(_FIRST_NAMES)
    name = first.lower() + rng.choice(_HANDLE_ENDS)
    while name in taken:
        name += str(rng.randrange(10))
    taken.add(name)
    made_ms = start_ms - rng.randrange(DAY_MS, 1_200 * DAY_MS)
    return DemoUser(make_snowflake(made_ms, worker=905, sequence=number), name, first)


def _make_raider(rng: random.Random, number: int, until_ms: int) -> DemoUser:
    made_ms = until_ms - rng.randrange(2 * HOUR_MS, 20 * HOUR_MS)
    name = f"{rng.choice(_RAIDER_NAME_PARTS)}{rng.choice(_RAIDER_NAME_PARTS)}{rng.randrange(100, 1000)}"
    return DemoUser(make_snowflake(made_ms, worker=906, sequence=number), name, "")
