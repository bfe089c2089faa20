"""Invalid input is explained with 400 or 404, never a 500."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from chatstore.models.users import User
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]

GETS = (
    ("/channels/{channel}/?at=2999-01-01", 400, "1 Jan 2999 is in the future"),
    ("/channels/{channel}/?at=someday", 400, "not a valid date"),
    ("/channels/{channel}/?at=1700-01-01", 400, "before the first possible message"),
    ("/channels/{channel}/?at=2024-13-45", 400, "not a valid date"),
    ("/channels/{channel}/?at=9999-12-31T23:59:59-23:59", 400, "not a valid date"),
    ("/channels/{channel}/?before=abc", 400, "not an ID"),
    ("/channels/{channel}/?after=1.5", 400, "not an ID"),
    ("/channels/{channel}/?around=99999999999999999999", 400, "64 bits"),
    ("/channels/{channel}/?before=%00", 400, "not an ID"),
    ("/channels/{channel}/?before=--5", 400, "not an ID"),
    ("/channels/{channel}/?before=1&after=2", 400, "one position"),
    ("/channels/{channel}/rows/", 400, "“before” or “after”"),
    ("/channels/12345/", 404, "no channel"),
    ("/channels/abc/", 404, ""),
    ("/channels/99999999999999999999/", 404, ""),
    ("/channels/12345/rows/?before=1", 404, "no channel"),
    ("/channels/12345/delete/", 404, "no channel"),
    ("/channels/{channel}/notanid/", 404, ""),
    ("/purges/12345/", 404, "no purge"),
    ("/purges/abc/", 404, ""),
    ("/purges/?state=sunny", 400, "Unknown state"),
    ("/purges/?before=abc", 400, "not an ID"),
    ("/purges/?channel=abc", 400, "not an ID"),
    ("/purges/?by=%00", 400, "NUL"),
    ("/find/", 400, "Enter a message link"),
    ("/find/?q=%20", 400, "Enter a message link"),
    ("/find/?q=%00", 400, "too long"),
    ("/find/?q=" + "x" * 400, 400, "too long"),
    ("/find/?q=99999999999999999999", 400, "64 bits"),
    ("/find/?q=12345678", 200, "No message"),
    ("/find/?q=-12345678", 200, "No message"),
    ("/find/?q=https://discord.example/channels/1/2/3", 200, "No results"),
)

POSTS: tuple[tuple[dict[str, str | list[str]], str], ...] = (
    ({}, "Nothing is selected"),
    ({"selected": "1"}, "No messages selected"),
    ({"selected": "1", "message_id": "abc"}, "not an ID"),
    ({"selected": "1", "message_ids": "1 2 x"}, "not an ID"),
    ({"selected": "1", "message_ids": " ".join(map(str, range(1001)))}, "at most 1,000"),
    ({"authors": "no-such-user"}, "There is no user called"),
    ({"authors": "99999999999999999999999"}, "not an ID"),
    ({"authors": ",".join(f"x{n}" for n in range(130))}, "at most 100"),
    ({"authors": "a\x00b"}, "Null characters"),
    ({"after": "2999-01-01"}, "future"),
    ({"before": "2999-01-01"}, "future"),
    ({"after": "at the beginning"}, "not a valid date"),
    ({"after": "2024-03-02", "before": "2024-03-01"}, "must be after its start"),
    ({"everything": "1", "after": "2024-03-02"}, "whole channel cannot be combined"),
    ({"everything": "1"}, "type its name: room"),
    ({"everything": "1", "channel_name": "rom"}, "type its name: room"),
    ({"pattern": "a("}, "is not valid"),
    ({"pattern": ".*"}, "matches every message"),
    ({"words": "!?"}, "at least one word"),
    ({"any_words": "!?"}, "at least one word"),
    ({"account_days": "a week"}, "not a number of days"),
    ({"account_days": "0"}, "from 1 to"),
    ({"joined_minutes": "1.5"}, "not a number of minutes"),
    ({"joined_minutes": "43201"}, "from 1 to 43,200"),
    ({"first_seen_hours": "-1"}, "not a number of hours"),
    ({"first_seen_hours": "8761"}, "from 1 to 8,760"),
    ({"similar": "https://discord.com/channels/1/2/3"}, "has no text, or does not exist"),
    ({"either-has": "gold"}, "gold is not one of the available choices"),
    ({"none-reply_to": "that one"}, "not an ID"),
    ({"with_pinned": "1"}, "Nothing is selected"),
)

EVERYWHERE: tuple[tuple[dict[str, str], str], ...] = (
    ({}, "Nothing is selected"),
    ({"words": "coins"}, "Enter an author"),
    ({"words": "coins", "channels": "no-such-channel-here"}, "There is no channel"),
    ({"authors": "12", "guild": "12345678"}, "There is no server"),
    ({"words": "coins", "guild": "x"}, "There is no server “x”"),
    ({"selected": "1", "message_id": "5"}, "Nothing is selected"),
)


def test_an_invalid_url_is_explained(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for path, status, words in GETS:
        response = client.get(path.format(**previewed.names))
        assert response.status_code == status, path
        assert words in response.content.decode(), path


def test_an_invalid_selection_is_explained_beside_its_form(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    client = sign_in(mona)
    for fields, words in POSTS:
        response = client.post(f"/channels/{previewed.channel.pk}/delete/", fields)
        assert response.status_code == 400, fields
        page = response.content.decode()
        assert words in page, fields
        assert ">Preview<" in page, fields


def test_an_invalid_selection_over_many_channels_is_explained_too(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for fields, words in EVERYWHERE:
        response = client.post("/delete/", fields)
        assert response.status_code == 400, fields
        assert words in response.content.decode(), fields


def test_form_input_is_preserved(mona: User, sign_in: SignIn) -> None:
    fields = {
        "channels": "no-such-channel-here",
        "authors": "12, 13",
        "has": ["link", "embed"],
        "either-words": "free coins",
        "none-pattern": "keep <me>",
        "none-bots": "on",
        "with_pinned": "1",
    }
    html = sign_in(mona).post("/delete/", fields).content.decode()
    kept = dict(re.findall(r'<input type="text" name="([^"]+)" value="([^"]+)"', html))
    assert kept == {"authors": "12, 13", "either-words": "free coins", "none-pattern": "keep &lt;me&gt;"}
    assert 'name="channels" value="no-such-channel-here"' in html
    selected = re.findall(r'<input type="checkbox" name="([^"]+)"(?: value="([^"]+)")?[^>]* checked', html)
    assert selected == [("has", "link"), ("has", "embed"), ("none-bots", ""), ("with_pinned", "1")]
    assert html.count('<details class="card fold" open>') == 2


def test_a_confirmation_needs_a_reason_and_the_shown_manifest_hash(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/confirm/"
    manifest_hash = bytes(previewed.purge.manifest_hash or b"").hex()
    for fields, words in (
        ({"manifest_hash": manifest_hash}, "Enter a reason"),
        ({"manifest_hash": manifest_hash, "reason": "  "}, "Enter a reason"),
        ({"reason": "spam"}, "incomplete"),
        ({"reason": "spam", "manifest_hash": "0" * 64}, "preview has changed"),
        ({"reason": "spam", "manifest_hash": "zz"}, "incomplete"),
    ):
        response = client.post(path, fields)
        assert response.status_code == 400
        assert words in response.content.decode()
    previewed.purge.refresh_from_db()
    assert previewed.purge.confirmed_at is None


def test_a_purge_that_cannot_be_cancelled_shows_it(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    response = sign_in(mona).post(f"/purges/{previewed.purge.pk}/cancel/")
    assert response.status_code == 400
    assert "cannot be cancelled" in response.content.decode()


def test_wrong_methods_are_refused(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for path in ("/", "/find/?q=x", f"/channels/{previewed.channel.pk}/", "/purges/"):
        assert client.post(path).status_code == 405
    assert client.get(f"/purges/{previewed.purge.pk}/confirm/").status_code == 405
    assert client.get("/sign-out/").status_code == 405


def test_a_form_without_its_token_is_refused(previewed: PreviewedPurge, mona: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(mona)
    answer = client.post(f"/channels/{previewed.channel.pk}/delete/", {"everything": "1"})
    assert answer.status_code == 403
    assert "Nothing was changed. Go back, reload the page" in answer.content.decode()
