"""A form that is sent twice, by a double click, drafts one preview, and both answers lead to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import pytest
from django.db import connections
from django.db.models import F
from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.sent_twice import SENT_TWICE_WITHIN
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.purging.lifecycle import AlreadyDrafted, draft_purge
from tests.moderation.channels import VICTOR, everything, make_channel, old_ids, write
from tests.moderation.limits import limit
from tests.pages.test_without_script import read_fields

SignIn = Callable[[User], Client]

CLICKS = 4


@pytest.fixture
def channel() -> Channel:
    channel = make_channel(guild="Harbour")
    write(channel, old_ids(5))
    return channel


def fill_in(client: Client, channel: Channel, **typed: str) -> dict[str, str]:
    """Open the composer of a channel; return its fields with what is typed."""
    path = f"/channels/{channel.pk}/delete/"
    return {**read_fields(client.get(path).content.decode(), path), "authors": str(VICTOR), **typed}


def send(client: Client, channel: Channel, fields: Mapping[str, Sequence[str]]) -> int:
    """Post the composer; return the preview that the answer leads to."""
    answer = client.post(f"/channels/{channel.pk}/delete/", fields)
    assert answer.status_code == 302
    return int(answer["Location"].strip("/").split("/")[-1])


def drafts_in(channel: Channel) -> list[int]:
    return list(Purge.objects.filter(selection__channels=[str(channel.pk)]).order_by("pk").values_list("pk", flat=True))


def test_the_second_of_two_clicks_leads_to_the_preview_of_the_first(
    channel: Channel, mona: User, sign_in: SignIn
) -> None:
    client = sign_in(mona)
    # Another time each time that it is read.
    fields = fill_in(client, channel, after="20 minutes ago")
    first = send(client, channel, fields)
    assert send(client, channel, fields) == first
    assert drafts_in(channel) == [first]
    assert AuditEntry.objects.filter(channel_id=channel.pk, action="purge_drafted").count() == 1


def test_of_clicks_at_the_same_time_one_drafts(channel: Channel, mona: User) -> None:
    form, barrier = uuid4(), Barrier(CLICKS)

    def draft(_click: int) -> int:
        try:
            barrier.wait(timeout=60)
            return draft_purge(moderator=mona, selection=everything(channel), sent_form=form).pk
        except AlreadyDrafted as earlier:
            return earlier.purge_id
        finally:
            connections.close_all()

    with ThreadPoolExecutor(CLICKS) as pool:
        found = list(pool.map(draft, range(CLICKS)))
    assert drafts_in(channel) == list(set(found))
    assert len(set(found)) == 1


def test_messages_that_are_selected_on_a_page_are_drafted_once(channel: Channel, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    fields = {"selected": "1", "message_id": [str(i) for i in old_ids(5)[:3]]}
    first = send(client, channel, fields)
    assert send(client, channel, fields) == first
    # Scanned by the first request, and not again.
    assert Purge.objects.get(pk=first).manifest == 3
    assert drafts_in(channel) == [first]


def test_the_second_click_is_not_refused_by_the_limit_of_open_previews(
    channel: Channel, mona: User, sign_in: SignIn
) -> None:
    limit(channel, open_previews=1)
    client = sign_in(mona)
    fields = fill_in(client, channel)
    assert send(client, channel, fields) == send(client, channel, fields)


def test_a_preview_that_is_edited_is_replaced_once(channel: Channel, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    old = send(client, channel, fill_in(client, channel))
    path = f"/channels/{channel.pk}/delete/"
    fields = {**read_fields(client.get(f"{path}?preview={old}").content.decode(), path), "words": "hello"}
    new = send(client, channel, fields)
    assert send(client, channel, fields) == new != old
    assert drafts_in(channel) == [old, new]
    assert [Purge.objects.get(pk=pk).state == PurgeState.EXPIRED for pk in (old, new)] == [True, False]


def test_the_same_filter_drafts_another_preview_from_a_page_that_is_opened_again(
    channel: Channel, mona: User, sign_in: SignIn
) -> None:
    client = sign_in(mona)
    first = send(client, channel, fill_in(client, channel))
    assert send(client, channel, fill_in(client, channel)) != first


def test_the_same_page_drafts_another_preview_later(channel: Channel, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    fields = fill_in(client, channel)
    first = send(client, channel, fields)
    Purge.objects.filter(pk=first).update(created_at=F("created_at") - SENT_TWICE_WITHIN)
    assert send(client, channel, fields) != first


def test_the_same_page_drafts_another_preview_with_another_filter(
    channel: Channel, mona: User, sign_in: SignIn
) -> None:
    client = sign_in(mona)
    fields = fill_in(client, channel)
    first = send(client, channel, fields)
    assert send(client, channel, {**fields, "words": "hello"}) != first


def test_the_same_page_drafts_another_preview_after_the_first_was_discarded(
    channel: Channel, mona: User, sign_in: SignIn
) -> None:
    client = sign_in(mona)
    fields = fill_in(client, channel)
    first = send(client, channel, fields)
    client.post(f"/purges/{first}/discard/")
    assert send(client, channel, fields) != first


def test_a_form_of_another_person_is_another_one(channel: Channel, mona: User, lena: User) -> None:
    form = uuid4()
    drafts = [draft_purge(moderator=each, selection=everything(channel), sent_form=form) for each in (mona, lena)]
    assert drafts_in(channel) == [draft.pk for draft in drafts]
