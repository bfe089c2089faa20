"""`manage.py chatter`: people who post, edit, withdraw and pin, at a steady rate."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections import Counter, deque
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chatstore.domain.errors import BadInput, StoreUnavailable, WriteRefused
from chatstore.domain.messages import Message
from chatstore.models import Channel, ChatUser
from chatstore.operations import messages

MADE_UP_AUTHORS = 50
REMEMBERED = 200
SAY_EVERY_SECONDS = 5.0

# Out of a hundred acts; the rest are posts.
EDITS, WITHDRAWALS, PINS = 6, 2, 1

_SAYINGS = (
    "the build is green again",
    "who broke it yesterday?",
    "I can look after lunch",
    "please rebase first",
    "shipping tonight is fine with me",
    "does anyone have a link to the docs?",
    "that one is a known bug",
    "thanks a lot, works here now",
)


class Talk:
    """Somebody in every channel, and what they said last."""

    def __init__(self, channel_ids: list[int], author_ids: list[int], *, seed: int) -> None:
        self._random = random.Random(seed)
        self._channels = channel_ids
        self._authors = author_ids
        self._recent: deque[Message] = deque(maxlen=REMEMBERED)
        self.acts: Counter[str] = Counter()
        self.milliseconds: list[float] = []

    def act(self) -> None:
        """One act, through the surface that a chat's gateway uses."""
        chosen = self._random.randrange(100) if self._recent else 100
        began = time.monotonic()
        try:
            if chosen < EDITS:
                self._edit()
            elif chosen < EDITS + WITHDRAWALS:
                self._withdraw()
            elif chosen < EDITS + WITHDRAWALS + PINS:
                self._pin()
            else:
                self._post()
        except BadInput:
            # Somebody else removed it meanwhile, which is what purges are for.
            self.acts["gone"] += 1
        except StoreUnavailable:
            self.acts["failed"] += 1
        self.milliseconds.append((time.monotonic() - began) * 1000)

    def _say(self) -> str:
        return "; ".join(self._random.choices(_SAYINGS, k=self._random.randint(1, 5)))

    def _post(self) -> None:
        author_id = self._random.choice(self._authors)
        channel_id = self._random.choice(self._channels)
        self._recent.append(messages.post_message(channel_id, author_id=author_id, content=self._say()))
        self.acts["posted"] += 1

    def _edit(self) -> None:
        message = self._random.choice(self._recent)
        messages.edit_message(
            message.channel_id, message.message_id, actor=message.author_id, content=self._say()
        )
        self.acts["edited"] += 1

    def _withdraw(self) -> None:
        message = self._random.choice(self._recent)
        self._recent.remove(message)
        messages.withdraw_message(message.channel_id, message.message_id, actor=message.author_id)
        self.acts["withdrawn"] += 1

    def _pin(self) -> None:
        message = self._random.choice(self._recent)
        messages.pin_message(message.channel_id, message.message_id, actor=message.author_id)
        self.acts["pinned"] += 1


class Command(BaseCommand):
    """Keeps a chat going, through the surface that a gateway uses."""

    help = "Post, edit, withdraw and pin at a steady rate, as a chat's gateway would."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rate", type=float, default=200, help="acts per second (200)")
        parser.add_argument("--seconds", type=float, default=60, help="how long (60)")
        parser.add_argument("--channel", type=int, action="append", help="a channel id; all by default")
        parser.add_argument("--seed", type=int, default=0, help="the same talk for the same seed")
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        rate, seconds = options["rate"], options["seconds"]
        if rate <= 0 or seconds <= 0:
            raise CommandError("--rate and --seconds must be above 0.")
        talk = Talk(_channels(options["channel"]), _authors(), seed=options["seed"])
        began = time.monotonic()
        try:
            self._talk(talk, rate=rate, seconds=seconds, silent=options["json"])
        except KeyboardInterrupt:
            self.stderr.write("Stopped.")
        except WriteRefused as error:
            raise CommandError(str(error)) from None
        summary = _summarise(talk, time.monotonic() - began)
        self.stdout.write(json.dumps(summary) if options["json"] else _say_summary(summary))

    def _talk(self, talk: Talk, *, rate: float, seconds: float, silent: bool) -> None:
        began = said = time.monotonic()
        for number in range(round(rate * seconds)):
            wait = began + number / rate - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            talk.act()
            now = time.monotonic()
            if now > began + seconds:
                return
            if not silent and now - said > SAY_EVERY_SECONDS:
                said = now
                self.stdout.write(_say_summary(_summarise(talk, now - began)))


def _channels(chosen: list[int] | None) -> list[int]:
    known = set(Channel.objects.values_list("id", flat=True))
    missing = set(chosen or ()) - known
    if missing:
        raise CommandError(f"There is no channel {min(missing)}.")
    if not known:
        raise CommandError("There is no channel yet: import something, or run `manage.py seed_demo`.")
    return sorted(chosen or known)


def _authors() -> list[int]:
    known = list(ChatUser.objects.order_by("id").values_list("id", flat=True)[:MADE_UP_AUTHORS])
    return known or list(range(1, MADE_UP_AUTHORS + 1))


def _summarise(talk: Talk, seconds: float) -> dict[str, Any]:
    timings = talk.milliseconds
    p95 = statistics.quantiles(timings, n=20)[-1] if len(timings) > 1 else sum(timings)
    return {
        **talk.acts,
        "seconds": round(seconds, 1),
        "per_second": round(len(timings) / seconds, 1),
        "p95_ms": round(p95, 1),
    }


def _say_summary(summary: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in summary.items())
