"""The list of what was deleted recently: where, by whom, and how long it can be restored, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.purging import listing
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, by_victor, make_channel, old_ids, preview, purge_now, run_to_end, write
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]


def squeeze(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


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
    assert re.search(r"undo expires in (29|30) days", line)
    assert f"/purges/{purge.pk}/" in html


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
    html = read_html(sign_in(mona), f"/purges/?view=deleted&by={mona.username}")
    assert f"/purges/{whole.pk}/" not in html
    assert re.findall(r'<b class="deleted-count">(\d+)</b>', html) == ["5"]


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
