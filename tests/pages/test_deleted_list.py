"""The list of what was deleted recently: where, by whom, and how long it can be restored, page by page."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from chatstore.domain.roles import Role
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.purging import listing
from moderation.operations.undo.requests import UndoPart, request_undo, undo_until
from moderation.presentation.formats import format_exact, format_short_day
from tests.conftest import give, make_user
from tests.moderation.channels import (
    VICTOR,
    by_victor,
    make_channel,
    name_authors,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]


def squeeze(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def counts_of(html: str) -> list[str]:
    """Return the numbers at the beginning of the lines."""
    return [squeeze(one).strip() for one in re.findall(r'<span class="deleted-count">(.*?)<div', html, re.DOTALL)]


def purge_of(mona: User, count: int = 3) -> Purge:
    channel = make_channel(guild="Harbour")
    write(channel, old_ids(count))
    return purge_now(mona, by_victor(channel))


def test_it_shows_count_place_moderator_and_the_time_left(mona: User, sign_in: SignIn) -> None:
    purge = purge_of(mona, 7)
    html = read_html(sign_in(mona), f"/purges/?view=deleted&by={mona.username}")
    line = squeeze(html[html.index('class="deleted-line"') :])
    assert " 7 " in line
    assert "#room (Harbour)" in line
    assert mona.get_username() in line
    until = undo_until(purge)
    assert until is not None
    assert f"can be restored until {format_short_day(until)}" in line
    assert f'title="{format_exact(until)}"' in html
    assert f"/purges/{purge.pk}/" in html


def test_it_shows_the_time_that_it_is_sorted_by(mona: User, sign_in: SignIn) -> None:
    purges = [purge_of(mona) for _ in range(2)]
    began = [timezone.now() - dt.timedelta(hours=hours) for hours in (2, 5)]
    for purge, at in zip(purges, began, strict=True):
        Purge.objects.filter(pk=purge.pk).update(quarantined_at=at, finished_at=timezone.now())
    # The first one ended before the other.
    Purge.objects.filter(pk=purges[0].pk).update(finished_at=timezone.now() - dt.timedelta(hours=1))
    html = read_html(sign_in(mona), f"/purges/?view=deleted&by={mona.username}")
    lines = html.split('class="deleted-line"')[1:]
    for line, purge, at in zip(lines, purges, began, strict=True):
        assert f"/purges/{purge.pk}/" in line
        assert f'title="{format_exact(at)}"' in line


def test_those_who_may_restore_a_purge_have_a_link_in_its_line(mona: User, sign_in: SignIn) -> None:
    purge = purge_of(mona)
    auditor = make_user("aron", group=None)
    give(auditor, Role.AUDITOR)
    link, path = f'href="/purges/{purge.pk}/undo/"', f"/purges/?view=deleted&by={mona.username}"
    client = sign_in(mona)
    assert link in read_html(client, path)
    assert "Restore 3 messages?" in squeeze(read_html(client, f"/purges/{purge.pk}/undo/"))
    assert link not in read_html(sign_in(auditor), path)


def test_each_deleted_message_of_a_purge_can_be_restored_from_its_row(mona: User, sign_in: SignIn) -> None:
    purge, client = purge_of(mona), sign_in(mona)
    message_id = old_ids(3)[1]
    link = f"/purges/{purge.pk}/undo/?message_id={message_id}"
    listed = read_html(client, f"/purges/{purge.pk}/messages/")
    assert listed.count("/undo/?message_id=") == 3
    assert f'href="{link}"' in listed
    assert "Restore 1 message?" in squeeze(read_html(client, link))
    fields = {"message_ids": str(message_id), "reason": "Appeal accepted"}
    assert client.post(f"/purges/{purge.pk}/undo/", fields).status_code == 302
    run_to_end(purge)
    assert f"?message_id={message_id}" not in read_html(client, f"/purges/{purge.pk}/messages/")


def test_a_user_page_offers_to_restore_their_messages_of_a_purge(mona: User, sign_in: SignIn) -> None:
    name_authors()
    purge, client = purge_of(mona), sign_in(mona)
    link = f"/purges/{purge.pk}/undo/?author={VICTOR}"
    assert f'href="{link}"' in read_html(client, f"/users/{VICTOR}/")
    assert "Restore 3 messages?" in squeeze(read_html(client, link))


def test_restored_messages_are_not_counted_and_a_restored_purge_is_not_listed(mona: User, sign_in: SignIn) -> None:
    channels = [make_channel(), make_channel()]
    for channel in channels:
        write(channel, old_ids(5))
    selection = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))
    partly, whole = purge_now(mona, selection), purge_of(mona)
    request_undo(partly.pk, moderator=mona, part=UndoPart(channel_ids=(channels[0].pk,)), reason="Appeal accepted")
    request_undo(whole.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(partly)
    run_to_end(whole)
    client = sign_in(mona)
    html = read_html(client, f"/purges/?view=deleted&by={mona.username}")
    assert f"/purges/{whole.pk}/" not in html
    assert counts_of(html) == ["5 of 10"]
    assert "5 of 10 deleted" in squeeze(read_html(client, f"/purges/?by={mona.username}"))


def test_the_number_stands_alone_where_all_is_deleted(mona: User, sign_in: SignIn) -> None:
    purge_of(mona, 7)
    assert counts_of(read_html(sign_in(mona), f"/purges/?view=deleted&by={mona.username}")) == ["7"]


def test_previews_are_not_listed(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(2))
    purge = preview(mona, by_victor(channel))
    assert f"/purges/{purge.pk}/" not in read_html(sign_in(mona), f"/purges/?view=deleted&by={mona.username}")


def test_pages_continue_where_the_last_one_ended(mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "PURGES_PER_PAGE", 2)
    purges = [purge_of(mona) for _ in range(3)]
    client = sign_in(mona)
    first = read_html(client, f"/purges/?view=deleted&by={mona.username}")
    assert re.findall(r'class="title" href="/purges/(-?\d+)/"', first) == [str(p.pk) for p in purges[:0:-1]]
    (older,) = re.findall(r'href="(\?[^"]*before=[^"]*)"', first)
    second = read_html(client, f"/purges/{older.replace('&amp;', '&')}")
    assert re.findall(r'class="title" href="/purges/(-?\d+)/"', second) == [str(purges[0].pk)]


def test_purges_of_others_are_left_out_on_request(mona: User, sign_in: SignIn) -> None:
    other = make_user("lena", group="moderators")
    theirs = purge_of(other)
    client = sign_in(mona)
    assert f"/purges/{theirs.pk}/" in read_html(client, "/purges/?view=deleted")
    assert f"/purges/{theirs.pk}/" not in read_html(client, f"/purges/?view=deleted&by={mona.username}")


def test_the_list_of_incomplete_purges_has_no_others(mona: User, sign_in: SignIn) -> None:
    done, failed = purge_of(mona), purge_of(mona)
    Purge.objects.filter(pk=failed.pk).update(state="done_with_failures")
    html = read_html(sign_in(mona), f"/purges/?state=done_with_failures&by={mona.username}")
    assert f"/purges/{failed.pk}/" in html
    assert f"/purges/{done.pk}/" not in html
