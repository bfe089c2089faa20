"""Channels beside those of the scene, and posts of the last hour in them, for the list of channels."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from redis import Redis

from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel
from chatstore.store import activity
from tests.moderation.channels import now_ms
from tests.pages.serving import Site

NEIGHBOURS = {
    "Harbour": ("announcements", "rules-and-roles"),
    "Piers": ("ferry-times", "fishing", "north-pier-repairs-and-closures", "tide-tables"),
    "Voice and photos": ("photo-competition", "lounge", "music"),
}


def make_neighbours(channel_id: int) -> list[int]:
    """Create channels in the guild of a channel; return their ids."""
    guild = Channel.objects.get(pk=channel_id).guild
    start = now_ms()
    named = [(category, name) for category, names in NEIGHBOURS.items() for name in names]
    made = Channel.objects.bulk_create(
        Channel(pk=make_snowflake(start + number), guild=guild, category=category, name=name)
        for number, (category, name) in enumerate(named)
    )
    return [channel.pk for channel in made]


def show_activity(site: Site, channel_ids: Sequence[int], *, raided: int) -> None:
    """Count posts of the last hour in most of the channels, and many in the raided one at its end."""
    dice, now = random.Random(3), time.time()
    slot = int(now // (activity.SLOT_MINUTES * 60))
    with Redis.from_url(site.environ["REDIS_URL"]) as client:
        for channel_id in channel_ids[::2]:
            client.zadd(activity.KEY, {str(channel_id): now - dice.randrange(3_000)})
            rate = dice.choice((0.4, 2, 9))
            for ago in range(activity.SLOTS):
                _count(client, slot - ago, channel_id, int(dice.random() * 2 * rate))
        client.zadd(activity.KEY, {str(raided): now})
        for ago, posts in enumerate((331, 192, 3, 5, 2, 4)):
            _count(client, slot - ago, raided, posts)


def _count(client: Redis, slot: int, channel_id: int, posts: int) -> None:
    if posts:
        client.zincrby(f"posts_of_slot:{slot}", posts, str(channel_id))
