"""The home page shows the channels with the newest messages first, whatever their names and number."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from chatstore.gateway import post_message
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.gateway.timeline import MAX_ACTIVE_CHANNELS
from chatstore.store.activity import last_active_channels
from moderation.operations.lookup.channels import channels_by_activity
from tests.chatstore.channels import fresh_id
from tests.waiting import wait_until


@pytest.fixture
def raided() -> Iterator[Channel]:
    """A channel whose name comes after those of more channels than a page reads."""
    first = fresh_id()
    others = [Channel(id=first + number, name=f"  {number}") for number in range(MAX_ACTIVE_CHANNELS)]
    Channel.objects.bulk_create(others)
    yield Channel.objects.create(id=fresh_id(), name=f"~{secrets.token_hex(4)}")
    Channel.objects.filter(pk__in=[channel.pk for channel in others]).delete()


def test_a_channel_that_is_far_back_in_the_alphabet_is_shown_when_it_is_active(raided: Channel, mona: User) -> None:
    message = post_message(raided.pk, author_id=fresh_id(), content="spam")
    wait_until(lambda: raided.pk in last_active_channels(20))
    overview = channels_by_activity(mona)
    shown = {entry.channel.pk: entry.newest for entry in overview.recent}
    assert shown[raided.pk] == message
    assert len(overview.recent) + len(overview.others) <= MAX_ACTIVE_CHANNELS
