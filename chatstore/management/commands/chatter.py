"""`manage.py chatter`: post, edit, withdraw and pin messages at a steady rate."""

from __future__ import annotations

import argparse
import json
import queue
import random
import statistics
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError
from django.db import connections

from chatstore import gateway
from chatstore.gateway import BadInput, Message, StoreUnavailable, WriteRefused
from chatstore.management.inert import InertCommand
from chatstore.models import Channel, ChatUser

TALKERS = 8
"""At 200 actions per second each of 8 threads has 40 ms per action, as long as one takes beside a busy purge."""

MADE_UP_AUTHORS = 50
REMEMBERED = 200
SAY_EVERY_SECONDS = 5.0

# Shares in percent; the rest are posts.
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
    """Channels, authors, recent messages and the outcome of each action. Thread-safe."""

    def __init__(self, channel_ids: list[int], author_ids: list[int]) -> None:
        self._channels = channel_ids
        self._authors = author_ids
        self._recent: deque[Message] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()
        self.acts: Counter[str] = Counter()
        self.milliseconds: list[float] = []
        self.refusal: WriteRefused | None = None

    def act(self) -> None:
        """Run one random action through the API that a chat's gateway uses."""
        act = self._choose()
        began = time.monotonic()
        try:
            outcome = act()
        except BadInput:
            # A purge deleted the message in the meantime.
            outcome = "gone"
        except StoreUnavailable:
            outcome = "failed"
        except WriteRefused as error:
            self.refusal, outcome = error, "refused"
        with self._lock:
            self.acts[outcome] += 1
            self.milliseconds.append((time.monotonic() - began) * 1000)

    def _choose(self) -> Callable[[], str]:
        with self._lock:
            chosen = random.randrange(100)
            if not self._recent or chosen >= EDITS + WITHDRAWALS + PINS:
                return self._post
            message = random.choice(self._recent)
            if chosen < EDITS:
                return lambda: self._edit(message)
            if chosen < EDITS + WITHDRAWALS:
                self._recent.remove(message)
                return lambda: self._withdraw(message)
            return lambda: self._pin(message)

    def _say(self) -> str:
        return "; ".join(random.choices(_SAYINGS, k=random.randint(1, 5)))

    def _post(self) -> str:
        author_id, channel_id = random.choice(self._authors), random.choice(self._channels)
        message = gateway.post_message(channel_id, author_id=author_id, content=self._say())
        with self._lock:
            self._recent.append(message)
        return "posted"

    def _edit(self, message: Message) -> str:
        key = (message.channel_id, message.message_id)
        gateway.edit_message(*key, actor=message.author_id, content=self._say())
        return "edited"

    def _withdraw(self, message: Message) -> str:
        gateway.withdraw_message(message.channel_id, message.message_id, actor=message.author_id)
        return "withdrawn"

    def _pin(self, message: Message) -> str:
        gateway.pin_message(message.channel_id, message.message_id, actor=message.author_id)
        return "pinned"

    def summarise(self, seconds: float) -> dict[str, Any]:
        """Return actions by outcome, elapsed seconds, actions per second, and the 95th percentile of their duration."""
        with self._lock:
            timings, acts = list(self.milliseconds), dict(self.acts)
        p95 = statistics.quantiles(timings, n=20)[-1] if len(timings) > 1 else sum(timings)
        per_second = len(timings) / seconds
        return acts | {
            "seconds": round(seconds, 1),
            "per_second": round(per_second, 1),
            "p95_ms": round(p95, 1),
        }


class Command(InertCommand):
    """Generate chat traffic through the API that a gateway uses."""

    help = "Post, edit, withdraw and pin messages at a steady rate, as a chat's gateway would."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rate", type=float, default=200, help="actions per second (default: 200)")
        parser.add_argument("--seconds", type=float, default=60, help="duration in seconds (default: 60)")
        parser.add_argument("--channel", type=int, action="append", help="channel id, repeatable (default: all)")
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        rate, seconds = options["rate"], options["seconds"]
        if rate <= 0 or seconds <= 0:
            raise CommandError("--rate and --seconds must be above 0.")
        talk = Talk(_channels(options["channel"]), _authors())
        bell: queue.Queue[bool] = queue.Queue()
        talkers = [threading.Thread(target=_talk, args=(talk, bell)) for _ in range(TALKERS)]
        for talker in talkers:
            talker.start()
        began = time.monotonic()
        try:
            self._ring(bell, talk, rate=rate, seconds=seconds, silent=options["json"])
        except KeyboardInterrupt:
            self.stderr.write("Interrupted.")
        finally:
            for _ in talkers:
                bell.put(False)
            for talker in talkers:
                talker.join()
        if talk.refusal is not None:
            raise CommandError(str(talk.refusal))
        summary = talk.summarise(time.monotonic() - began)
        self.stdout.write(json.dumps(summary) if options["json"] else _say_summary(summary))

    def _ring(self, bell: queue.Queue[bool], talk: Talk, *, rate: float, seconds: float, silent: bool) -> None:
        """Queue one action per time slot at the given rate; a free thread runs it.

        While all threads are busy, slots are dropped, and the summary shows the lower rate.
        """
        began = said = time.monotonic()
        for number in range(round(rate * seconds)):
            wait = began + number / rate - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            if bell.qsize() < TALKERS:
                bell.put(True)
            now = time.monotonic()
            if talk.refusal is not None:
                return
            if not silent and now - said > SAY_EVERY_SECONDS:
                said = now
                self.stdout.write(_say_summary(talk.summarise(now - began)))


def _talk(talk: Talk, bell: queue.Queue[bool]) -> None:
    try:
        while bell.get():
            talk.act()
    finally:
        connections.close_all()


def _channels(chosen: list[int] | None) -> list[int]:
    known = set(Channel.objects.values_list("id", flat=True))
    missing = set(chosen or ()) - known
    if missing:
        raise CommandError(f"Channel {min(missing)} does not exist.")
    if not known:
        raise CommandError("No channels exist. Import messages, or run `manage.py seed_demo`.")
    return sorted(chosen or known)


def _authors() -> list[int]:
    known = list(ChatUser.objects.order_by("id").values_list("id", flat=True)[:MADE_UP_AUTHORS])
    return known or list(range(1, MADE_UP_AUTHORS + 1))


def _say_summary(summary: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in summary.items())
