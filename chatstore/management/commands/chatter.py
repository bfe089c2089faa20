"""`manage.py chatter`: post, edit, withdraw and pin messages at a steady rate, or raid a channel."""

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
from chatstore.demo.raid import join_raiders, make_raiders, plan_posts
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.snowflakes import make_snowflake
from chatstore.gateway import BadInput, Message, StoreUnavailable, WriteRefused
from chatstore.management.inert import InertCommand
from chatstore.models import Channel, ChatUser

THREADS = 8
"""At 200 actions per second each of 8 threads has 40 ms per action, as long as one takes beside a busy purge."""

DEFAULT_RATE = 200
RAID_RATE = 4
"""Posts per second of a raid: 412 messages take less than two minutes."""

RAID_SHARE = 80
"""Share of a raid's posts, in percent, that the raid's accounts write; members who talk write the others."""

RAIDED_CHANNEL = "general"
FALLBACK_AUTHORS = 50
MAX_RECENT_MESSAGES = 200
MEMBER_DAYS = 30
"""Age of the accounts that talk during a raid: those of an earlier raid do not."""

MAX_READ_MESSAGES = 500
"""Newest messages of the raided channel whose authors talk on."""

REPORT_INTERVAL_SECONDS = 5.0

# Shares in percent; the rest are posts.
EDITS, WITHDRAWALS, PINS = 6, 2, 1

_PHRASES = (
    "the build is green again",
    "who broke it yesterday?",
    "I can look after lunch",
    "please rebase first",
    "shipping tonight is fine with me",
    "does anyone have a link to the docs?",
    "that one is a known bug",
    "thanks a lot, works here now",
)


class ChatTraffic:
    """Channels, authors, recent messages and the outcome of each action. Thread-safe."""

    def __init__(self, channel_ids: list[int], author_ids: list[int]) -> None:
        self._channels = channel_ids
        self._authors = author_ids
        self._recent: deque[Message] = deque(maxlen=MAX_RECENT_MESSAGES)
        self._lock = threading.Lock()
        self.actions: Counter[str] = Counter()
        self.milliseconds: list[float] = []
        self.refusal: WriteRefused | None = None

    def run_action(self) -> None:
        """Run one random action through the API that a chat's gateway uses."""
        action = self._choose()
        began = time.monotonic()
        try:
            outcome = action()
        except BadInput:
            # A purge deleted the message in the meantime.
            outcome = "gone"
        except StoreUnavailable:
            outcome = "failed"
        except WriteRefused as error:
            self.refusal, outcome = error, "refused"
        with self._lock:
            self.actions[outcome] += 1
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

    def _make_content(self) -> str:
        return "; ".join(random.choices(_PHRASES, k=random.randint(1, 5)))

    def _post(self) -> str:
        author_id, channel_id = random.choice(self._authors), random.choice(self._channels)
        message = gateway.post_message(channel_id, author_id=author_id, content=self._make_content())
        with self._lock:
            self._recent.append(message)
        return "posted"

    def _edit(self, message: Message) -> str:
        key = (message.channel_id, message.message_id)
        gateway.edit_message(*key, actor=message.author_id, content=self._make_content())
        return "edited"

    def _withdraw(self, message: Message) -> str:
        gateway.withdraw_message(message.channel_id, message.message_id, actor=message.author_id)
        return "withdrawn"

    def _pin(self, message: Message) -> str:
        gateway.pin_message(message.channel_id, message.message_id, actor=message.author_id)
        return "pinned"

    def summarize(self, seconds: float) -> dict[str, Any]:
        """Return actions by outcome, elapsed seconds, actions per second, and the 95th percentile of their duration."""
        with self._lock:
            timings, actions = list(self.milliseconds), dict(self.actions)
        p95 = statistics.quantiles(timings, n=20)[-1] if len(timings) > 1 else sum(timings)
        per_second = len(timings) / seconds
        return actions | {
            "seconds": round(seconds, 1),
            "per_second": round(per_second, 1),
            "p95_ms": round(p95, 1),
        }


class RaidTraffic(ChatTraffic):
    """A raid of one channel by new accounts, while its members go on talking."""

    def __init__(self, channel_id: int, *, seed: int | None) -> None:
        now_ms, rng = time.time_ns() // 1_000_000, random.Random(seed)
        super().__init__([channel_id], _members(channel_id, now_ms) or _authors())
        raiders = make_raiders(rng, now_ms)
        ChatUser.objects.bulk_create(ChatUser(id=raider.user_id, name=raider.name) for raider in raiders)
        guild_id = Channel.objects.values_list("guild_id", flat=True).get(pk=channel_id)
        if guild_id is not None:
            gateway.save_members(guild_id, join_raiders(rng, raiders, now_ms))
        self._posts = plan_posts(rng, raiders)

    def _choose(self) -> Callable[[], str]:
        return self._raid if random.randrange(100) < RAID_SHARE else self._post

    def _raid(self) -> str:
        with self._lock:
            author_id, content = next(self._posts)
        gateway.post_message(self._channels[0], author_id=author_id, content=content)
        return "raided"


class Command(InertCommand):
    """Generate chat traffic through the API that a gateway uses."""

    help = "Post, edit, withdraw and pin messages at a steady rate, as a chat's gateway would."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rate", type=float, help="actions per second (default: 200, of a raid 4)")
        parser.add_argument("--seconds", type=float, default=60, help="duration in seconds (default: 60)")
        parser.add_argument("--channel", type=int, action="append", help="channel id, repeatable (default: all)")
        parser.add_argument("--raid", action="store_true", help="raid one channel (default: #general) by new accounts")
        parser.add_argument("--seed", type=int, help="repeat the posts of a raid (default: others each time)")
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        rate, seconds = options["rate"], options["seconds"]
        if rate is None:
            rate = RAID_RATE if options["raid"] else DEFAULT_RATE
        if rate <= 0 or seconds <= 0:
            raise CommandError("--rate and --seconds must be above 0.")
        channels = _channels(options["channel"])
        traffic = (
            RaidTraffic(_raided(channels), seed=options["seed"])
            if options["raid"]
            else ChatTraffic(channels, _authors())
        )
        slots: queue.Queue[bool] = queue.Queue()
        threads = [threading.Thread(target=_run_actions, args=(traffic, slots)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        try:
            self._schedule_actions(slots, traffic, rate=rate, seconds=seconds, quiet=options["json"])
        except KeyboardInterrupt:
            self.stderr.write("Interrupted.")
        finally:
            for _ in threads:
                slots.put(False)
            for thread in threads:
                thread.join()
        if traffic.refusal is not None:
            raise CommandError(str(traffic.refusal))
        summary = traffic.summarize(time.monotonic() - began)
        self.stdout.write(json.dumps(summary) if options["json"] else _format_summary(summary))

    def _schedule_actions(
        self, slots: queue.Queue[bool], traffic: ChatTraffic, *, rate: float, seconds: float, quiet: bool
    ) -> None:
        """Queue one action per time slot at the given rate; a free thread runs it.

        While all threads are busy, slots are dropped, and the summary shows the lower rate.
        """
        began = reported_at = time.monotonic()
        for number in range(round(rate * seconds)):
            wait = began + number / rate - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            if slots.qsize() < THREADS:
                slots.put(True)
            now = time.monotonic()
            if traffic.refusal is not None:
                return
            if not quiet and now - reported_at > REPORT_INTERVAL_SECONDS:
                reported_at = now
                self.stdout.write(_format_summary(traffic.summarize(now - began)))


def _run_actions(traffic: ChatTraffic, slots: queue.Queue[bool]) -> None:
    try:
        while slots.get():
            traffic.run_action()
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


def _raided(channel_ids: list[int]) -> int:
    """Return the channel to raid: the oldest that is called general, or else the oldest."""
    general = Channel.objects.filter(pk__in=channel_ids, name=RAIDED_CHANNEL).order_by("pk")
    return general.values_list("pk", flat=True).first() or channel_ids[0]


def _authors() -> list[int]:
    known = list(ChatUser.objects.order_by("id").values_list("id", flat=True)[:FALLBACK_AUTHORS])
    return known or list(range(1, FALLBACK_AUTHORS + 1))


def _members(channel_id: int, now_ms: int) -> list[int]:
    """Return the people who wrote the newest messages of a channel, without new accounts."""
    authors = {message.author_id for message in gateway.read_page(channel_id, limit=MAX_READ_MESSAGES).messages}
    before = make_snowflake(now_ms - MEMBER_DAYS * DAY_MS)
    people = ChatUser.objects.filter(pk__in=authors, pk__lt=before, is_bot=False)
    return list(people.order_by("pk").values_list("pk", flat=True))


def _format_summary(summary: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in summary.items())
