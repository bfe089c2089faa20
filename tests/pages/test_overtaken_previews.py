"""The number of a preview is of what is still there: other purges may have deleted some of it since the scan."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview import deleted_since
from moderation.operations.preview.deleted_since import count_by_author, count_deleted_since, find_deleted_since
from moderation.operations.purging.controls import pause_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.store.pace import Pace
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    claim,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.moderation.steps import finish_step, quarantine_step, stamp_step
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
    assert authors_in(read_html(sign_in(mona), f"/purges/{draft.pk}/")) == {VICTOR: (30, 30), WILMA: (0, 30)}
    assert "At the scan" not in text
    listed = read_html(sign_in(mona), f"/purges/{draft.pk}/messages/")
    assert "40 messages found, 30 left" in " ".join(listed.split())
    words = " ".join(re.sub(r"<[^>]+>", " ", listed).split())
    assert re.search(r"10 of the 40 .* have been deleted by other purges since then\. 30 are left\.", words)


def authors_in(html: str) -> dict[int, tuple[int, int]]:
    """Return the number of each author, and that of which its bar is a part."""
    found = re.findall(r'/messages/\?author=(\d+)">(\d+)<.*?</a>\s*<progress max="(\d+)" value="(\d+)"', html)
    assert all(number == value for _, number, _, value in found)
    return {int(author): (int(number), int(whole)) for author, number, whole, _ in found}


@pytest.fixture
def mixed_ids(channel: Channel) -> list[int]:
    """Two messages by Victor and one by Wilma in each of two more buckets."""
    found = []
    for buckets_ago in (6, 7):
        ids = old_ids(3, buckets_ago=buckets_ago)
        write(channel, ids[:2])
        write(channel, ids[2:], author=WILMA)
        found.append(ids)
    return [message_id for ids in found for message_id in ids]


def test_the_numbers_by_author_are_of_what_is_left_also_if_other_purges_have_deleted_a_part_of_an_author(
    mona: User, channel: Channel, mixed_ids: list[int], sign_in: SignIn
) -> None:
    draft, url = preview(mona, everything(channel)), "/purges/{}/"
    client = sign_in(mona)
    purge_now(mona, Selection(channel_ids=(channel.pk,), message_ids=(mixed_ids[0],)))
    purge_now(mona, Selection(channel_ids=(channel.pk,), message_ids=(mixed_ids[3], mixed_ids[5])))
    assert authors_in(read_html(client, url.format(draft.pk))) == {VICTOR: (32, 43), WILMA: (11, 43)}


def test_numbers_by_author_that_manifests_do_not_tell_are_said_to_be_of_the_scan(
    mona: User, channel: Channel, mixed_ids: list[int], sign_in: SignIn
) -> None:
    # A preview of some of the messages that another purge deletes: by whom those are is nowhere counted.
    draft = preview(mona, Selection(channel_ids=(channel.pk,), message_ids=tuple(mixed_ids[:3])))
    other = purge_now(mona, Selection(channel_ids=(channel.pk,), message_ids=tuple(mixed_ids[1:3])))
    assert count_deleted_since(draft) == 2
    assert count_by_author(draft, find_deleted_since(draft) or {}) == {VICTOR: 1, WILMA: 1}
    # As if the other purge had included more of Victor than it has deleted.
    other.manifest_buckets.update(authors={str(VICTOR): 2, str(WILMA): 1})
    html = read_html(sign_in(mona), f"/purges/{draft.pk}/")
    assert authors_in(html) == {VICTOR: (2, 3), WILMA: (1, 3)}
    words = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    assert "By author At the scan, with messages that other purges have deleted since." in words
    assert "except by author and in the plan by period. These, the number of authors" in words


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
    words = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    assert "Messages to delete are counted without them, except in the plan by period." in words
    assert "That plan, the number of authors and all numbers of kept messages are of the scan." in words
    zoomed = client.get(url, {"zoom": "all"}, headers={"HX-Request": "true", "HX-Target": "times"}).content.decode()
    assert messages_over_time(zoomed) == [30, 5]


def test_the_numbers_of_kept_messages_are_said_to_be_of_the_scan_if_other_purges_have_deleted_some(
    mona: User, channel: Channel, sign_in: SignIn
) -> None:
    draft, client = preview(mona, Selection(channel_ids=(channel.pk,), where=Author((WILMA,)))), sign_in(mona)
    kept = re.compile(r"same ten-day periods \(kept\) 30 ")
    stale = re.compile(r"Other purges may have deleted some of the kept messages .*; their numbers are of the scan\.")
    text = text_of(client, draft)
    assert kept.search(text)
    assert not stale.search(text)
    purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((VICTOR,))))
    text = text_of(client, draft)
    assert "Delete 10 messages?" in text
    # Which of the messages that it kept are deleted is not read: they are not in the manifest.
    assert kept.search(text)
    assert stale.search(text)


def test_a_purge_that_only_restores_since_the_scan_has_deleted_nothing_since(mona: User, channel: Channel) -> None:
    other = purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((VICTOR,))))
    draft = preview(mona, Selection(channel_ids=(channel.pk,), where=Author((WILMA,))))
    request_undo(other.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert find_deleted_since(draft) == {}
    # One that was paused has no end, but its steps have.
    Purge.objects.filter(pk=other.pk).update(finished_at=None)
    assert find_deleted_since(draft) == {}
    # As if the preview had been requested before it.
    draft.created_at = other.created_at
    assert find_deleted_since(draft)
    Purge.objects.filter(pk=other.pk).update(finished_at=other.finished_at)
    run_to_end(other)


def test_what_is_left_deleted_of_a_paused_purge_undone_in_part_is_not_in_the_number(
    mona: User, channel: Channel, draft: Purge
) -> None:
    other = confirm(mona, preview(mona, everything(channel)))
    step = claim(other)
    quarantined = quarantine_step(step, pace=Pace(10_000))
    stamp_step(step, quarantined)
    finish_step(step, pace=Pace(10_000), quarantined=quarantined)
    pause_purge(other.pk, moderator=mona)
    assert count_deleted_since(draft) == 20
    request_undo(other.pk, moderator=mona, part=UndoPart(author_ids=(WILMA,)), reason="Appeal accepted")
    run_to_end(other)
    other.refresh_from_db()
    assert other.state == PurgeState.PARTLY_UNDONE
    assert count_deleted_since(draft) == 15


def test_only_purges_that_worked_since_the_scan_are_compared(mona: User, channel: Channel, draft: Purge) -> None:
    earlier = purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((WILMA,))))
    later = purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((VICTOR,))))
    assert count_deleted_since(draft) == 40
    # As if it had ended before the preview was requested.
    Purge.objects.filter(pk=earlier.pk).update(finished_at=draft.created_at - dt.timedelta(seconds=1))
    assert count_deleted_since(draft) == later.manifest == 30


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
