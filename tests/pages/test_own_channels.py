"""Beside a channel: the channels that the viewer pinned, those they opened lately, and marks of raids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from chatstore.domain.runs import Severity
from chatstore.models import Channel, Finding
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, open_finding
from moderation.models import PinnedChannel
from moderation.operations.lookup.pinned import MAX_PINNED
from moderation.operations.lookup.sidebar import MAX_RECENT
from moderation.operations.raids.detection import RAID
from tests.moderation.channels import make_channel

SignIn = Callable[[User], Client]


@pytest.fixture
def channels() -> list[Channel]:
    return [make_channel() for _number in range(3)]


@pytest.fixture
def _no_raids() -> Iterator[None]:
    yield
    Finding.objects.open().filter(kind=RAID).update(closed_at=postgres_now())


def listed(client: Client, channel: Channel, heading: str) -> list[int]:
    """Return the ids of the channels listed below a heading beside the open one."""
    html = client.get(f"/channels/{channel.pk}/").content.decode()
    side = html.split('id="side"')[1].split("</nav>")[0]
    if f"<h2>{heading}</h2>" not in side:
        return []
    part = side.split(f"<h2>{heading}</h2>")[1].split("</ul>")[0]
    return [int(found) for found in re.findall(r"/channels/(\d+)/#end", part)]


def test_a_channel_is_pinned_for_its_viewer_alone_until_it_is_unpinned(
    channels: list[Channel], mona: User, lena: User, sign_in: SignIn
) -> None:
    opened, pinned, _ = channels
    client = sign_in(mona)
    for _time in range(2):
        assert client.post(f"/channels/{pinned.pk}/pin/")["Location"] == f"/channels/{pinned.pk}/"
    assert listed(client, opened, "Pinned") == [pinned.pk]
    assert listed(sign_in(lena), opened, "Pinned") == []
    client = sign_in(mona)
    assert ">Unpin</button>" in client.get(f"/channels/{pinned.pk}/").content.decode()
    client.post(f"/channels/{pinned.pk}/pin/", {"unpin": "1"})
    assert listed(client, opened, "Pinned") == []


def test_no_more_than_a_few_channels_are_pinned(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    PinnedChannel.objects.bulk_create(PinnedChannel(user=mona, channel=make_channel()) for _ in range(MAX_PINNED))
    answer = sign_in(mona).post(f"/channels/{channel.pk}/pin/")
    assert answer.status_code == 400
    assert "Unpin one of them first" in answer.content.decode()


def test_a_channel_that_does_not_exist_cannot_be_pinned(mona: User, sign_in: SignIn) -> None:
    assert sign_in(mona).post("/channels/5/pin/").status_code == 404


def test_the_channels_opened_lately_are_listed_the_latest_first(
    channels: list[Channel], mona: User, sign_in: SignIn
) -> None:
    first, second, third = channels
    client = sign_in(mona)
    for channel in (first, second, third):
        client.get(f"/channels/{channel.pk}/")
    assert listed(client, third, "Recent")[:2] == [second.pk, first.pk]
    client.post(f"/channels/{first.pk}/pin/")
    assert first.pk not in listed(client, third, "Recent")


def test_the_list_of_channels_opened_lately_is_bounded(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    opened = [make_channel() for _number in range(MAX_RECENT + 2)]
    for channel in opened:
        client.get(f"/channels/{channel.pk}/")
    found = listed(client, opened[-1], "Recent")
    assert len(found) == MAX_RECENT
    assert opened[0].pk not in found


@pytest.mark.usefixtures("_no_raids")
def test_a_channel_with_a_raid_is_marked(channels: list[Channel], mona: User, sign_in: SignIn) -> None:
    opened, raided, _ = channels
    client = sign_in(mona)
    client.post(f"/channels/{raided.pk}/pin/")
    details = {"channel": str(raided.pk), "since_ms": 0, "messages": 9, "accounts": 3}
    open_finding(RAID, str(raided.pk), Problem(Severity.CRITICAL, "Possible raid", details))
    html = client.get(f"/channels/{opened.pk}/").content.decode()
    side = html.split('id="side"')[1].split("</nav>")[0]
    items = side.split("<li>")[1:]
    in_lists = [f"/channels/{raided.pk}/" in item for item in items]
    assert any(in_lists)
    assert [">raid</span>" in item for item in items] == in_lists
