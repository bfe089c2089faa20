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
    assert "Review all 40 messages" in text
    assert "found" not in text


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
    assert "Review all 40 messages found" in text
    assert "By author As found, with messages that other purges have deleted since." in text
    listed = read_html(sign_in(mona), f"/purges/{draft.pk}/messages/")
    assert "40 messages found" in listed
    words = " ".join(re.sub(r"<[^>]+>", " ", listed).split())
    assert re.search(r"10 of the 40 .* have been deleted by other purges since then\. 30 are left\.", words)


def numbers_in(html: str, pattern: str) -> list[int]:
    return [int(number) for number in re.findall(pattern, html)]


def messages_over_time(html: str) -> list[int]:
    """Return the numbers of messages in the charts of when they were posted, by channel."""
    strips = re.findall(r'class="strip time-strip".*?</svg>', html, re.DOTALL)
    return [sum(numbers_in(strip, r"<title>[^<]*: (\d+) message")) for strip in strips]


def charts_of(html: str) -> tuple[int, list[int], list[int]]:
    """Return the messages to delete in the chart of buckets, in those of times and in the table of channels."""
    in_buckets = sum(numbers_in(html, r"<title>[^<]*\b(\d+) to delete"))
    cells = re.findall(r'data-label="To delete">(.*?)</td>', html, re.DOTALL)
    return in_buckets, messages_over_time(html), [int(re.sub(r"<[^>]+>", " ", cell)) for cell in cells]


def test_the_charts_and_the_channels_of_an_overtaken_preview_are_of_what_is_left(
    mona: User, channel: Channel, sign_in: SignIn
) -> None:
    other = make_channel()
    write(other, old_ids(5, buckets_ago=4))
    draft, client = (
        preview(mona, Selection(channel_ids=(channel.pk, other.pk), where=Author((VICTOR, WILMA)))),
        sign_in(mona),
    )
    url = f"/purges/{draft.pk}/"
    assert charts_of(read_html(client, url)) == (45, [40, 5], [40, 5])
    purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((WILMA,))))
    html = read_html(client, url)
    assert charts_of(html) == (35, [30, 5], [30, 5])
    assert "Only the numbers by author and the plan by period still include them." in html
    zoomed = client.get(url, {"zoom": "all"}, headers={"HX-Request": "true", "HX-Target": "times"}).content.decode()
    assert messages_over_time(zoomed) == [30, 5]


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
    page = read_html(sign_in(mona), f"/purges/{draft.pk}/")
    assert ["found" in legend.split("<details")[0] for legend in page.split('class="strip-foot"')[1:]] == [True, True]
