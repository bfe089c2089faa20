"""The number of a preview is of what is still there: other purges may have deleted some of it since the scan."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.preview import deleted_since
from moderation.operations.preview.deleted_since import count_deleted_since
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    """A channel with 30 messages by Victor and 10 by Wilma in two buckets."""
    channel = make_channel()
    for buckets_ago in (3, 4):
        ids = old_ids(20, buckets_ago=buckets_ago)
        write(channel, ids[:15])
        write(channel, ids[15:], author=WILMA)
    return channel


@pytest.fixture
def draft(mona: User, channel: Channel) -> Purge:
    return preview(mona, everything(channel))


def text_of(client: Client, purge: Purge) -> str:
    page = client.get(f"/purges/{purge.pk}/").content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_preview_that_nothing_has_overtaken_has_the_number_of_its_scan(
    mona: User, draft: Purge, sign_in: SignIn
) -> None:
    assert count_deleted_since(draft) == 0
    text = text_of(sign_in(mona), draft)
    assert "Delete 40 messages?" in text
    assert "since then" not in text


def test_what_another_purge_has_deleted_since_is_not_in_the_number(
    mona: User, channel: Channel, draft: Purge, sign_in: SignIn
) -> None:
    purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((WILMA,))))
    assert count_deleted_since(draft) == 10
    text = text_of(sign_in(mona), draft)
    assert "Delete 30 messages?" in text
    assert "Delete 30 messages" in text.split("Delete 30 messages?", 1)[1]
    assert re.search(r"10 of the 40 messages found .* have been deleted by other purges since then", text)
    assert "Preview again" in text
    listed = read_html(sign_in(mona), f"/purges/{draft.pk}/messages/")
    assert "40 messages found" in listed
    assert "have been deleted by other purges since" in listed


def test_what_is_restored_is_in_the_number_again(mona: User, channel: Channel, draft: Purge) -> None:
    other = purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((VICTOR,))))
    assert count_deleted_since(draft) == 30
    request_undo(other.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(other)
    assert count_deleted_since(draft) == 0


def test_of_what_was_deleted_before_the_scan_nothing_counts(mona: User, channel: Channel) -> None:
    purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((WILMA,))))
    draft = preview(mona, everything(channel))
    assert draft.manifest == 30
    assert count_deleted_since(draft) == 0


def test_a_preview_of_which_nothing_is_left_cannot_be_confirmed(
    mona: User, channel: Channel, draft: Purge, sign_in: SignIn
) -> None:
    purge_now(mona, everything(channel))
    client = sign_in(mona)
    text = text_of(client, draft)
    assert "Nothing is left to delete" in text
    assert "Discard the preview" in text
    assert f"/purges/{draft.pk}/confirm/" not in client.get(f"/purges/{draft.pk}/").content.decode()


def test_of_very_many_messages_the_number_is_not_known(
    mona: User, channel: Channel, draft: Purge, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((WILMA,))))
    monkeypatch.setattr(deleted_since, "MAX_IDS", 39)
    assert count_deleted_since(draft) is None
    text = text_of(sign_in(mona), draft)
    assert "Delete up to 40 messages?" in text
    assert "not counted how many are left" in text
