"""Erasure on the pages: requested by one user, shown to another, and no action is offered on erased copies."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.db.models.functions import Now
from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.gateway.messages import withdraw_message
from moderation import tasks
from moderation.domain.states import PurgeState
from moderation.models import Erasure, Purge
from moderation.operations.erasure.execution import erase_purge
from moderation.operations.erasure.requests import request_erasure
from moderation.operations.holds import HoldRequest, lift_hold, place_hold
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import VICTOR, make_channel, old_ids, run_to_end
from tests.moderation.erasures import chunks_kept, finished_purge, request_and_approve, state_of
from tests.pages.reading import read_page

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    return make_channel()


@pytest.fixture
def erased(lena: User, ada: User, purge: Purge) -> Purge:
    """Approve the erasure without deleting anything yet."""
    request_and_approve(purge, lena, ada)
    return purge


@pytest.fixture
def purge(mona: User, channel: Channel) -> Purge:
    return finished_purge(mona, channel)


def at(purge: Purge) -> str:
    return f"/purges/{purge.pk}/"


def test_one_user_requests_and_another_erases(
    lena: User, ada: User, sign_in: SignIn, purge: Purge, channel: Channel
) -> None:
    first, second = sign_in(lena), sign_in(ada)
    shown = read_page(first, at(purge))
    assert "Once approved, these 20 messages can never be restored or read again" in shown
    assert first.post(at(purge) + "erase/", {"reason": "request <71>"}).status_code == 302
    request = Erasure.objects.get(purge=purge)
    mine = read_page(first, at(purge))
    assert "You requested permanent deletion" in mine
    assert "erase/approve/" not in mine
    assert "request <71>" in mine
    assert "permanent deletion</a>: “request <71>”" in read_page(second, "/")
    assert f"{at(purge)}#erasure-request" not in read_page(first, "/")
    assert "Permanently delete 20 messages" in read_page(second, at(purge))
    unchecked = second.post(at(purge) + "erase/approve/", {"erasure": request.pk})
    assert (unchecked.status_code, state_of(purge)) == (400, PurgeState.DONE)
    assert "Confirm that none of the messages can be restored" in unchecked.content.decode()
    answer = second.post(at(purge) + "erase/approve/", {"erasure": request.pk, "is_final": "on"})
    assert (answer.status_code, state_of(purge)) == (302, PurgeState.ERASING)
    shown = read_page(first, at(purge))
    assert "Being permanently deleted" in shown
    assert "Restore 20 messages" not in shown
    erase_purge(purge.pk)
    shown = read_page(first, at(purge))
    assert "Unreadable, not yet off disk" in shown
    assert "None of them can be restored" in shown
    assert chunks_kept(purge, channel) == 0


def test_users_without_permission_see_the_request_but_cannot_decide(
    mona: User, lena: User, sign_in: SignIn, purge: Purge
) -> None:
    assert "Permanently delete" not in read_page(sign_in(mona), at(purge))
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    shown = read_page(sign_in(mona), at(purge))
    assert "waiting for approval" in shown
    assert "these 20 messages can never be restored or read again" in shown
    assert "A permanent deletion cannot be undone." in shown
    assert "erase/approve/" not in shown
    assert "erase/reject/" not in shown
    assert f"{at(purge)}#erasure-request" not in read_page(sign_in(mona), "/")
    for action in ("approve", "reject"):
        assert sign_in(mona).post(f"{at(purge)}erase/{action}/", {"erasure": request.pk}).status_code == 403


def test_a_refusal_is_shown_where_it_can_be_requested_again(
    lena: User, ada: User, sign_in: SignIn, purge: Purge
) -> None:
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    assert sign_in(ada).post(at(purge) + "erase/reject/", {"erasure": request.pk}).status_code == 302
    shown = read_page(sign_in(lena), at(purge))
    assert f"{ada.username} rejected the last request" in shown
    assert "Request permanent deletion" in shown


def test_the_reason_for_a_refusal_is_on_the_page(lena: User, sign_in: SignIn, purge: Purge, channel: Channel) -> None:
    client = sign_in(lena)
    empty = client.post(at(purge) + "erase/", {"reason": " "})
    assert (empty.status_code, "Enter a reason" in empty.content.decode()) == (400, True)
    placed = place_hold(HoldRequest(channel=str(channel.pk)), reason="case 71", actor=lena)
    refused = client.post(at(purge) + "erase/", {"reason": "request 71"})
    assert refused.status_code == 400
    assert "A hold covers some of these messages (“case 71”)" in html.unescape(refused.content.decode())
    assert "Request permanent deletion" not in read_page(client, at(purge))
    lift_hold(placed.pk, actor=lena, reason="The case is closed")


def test_a_request_decided_meanwhile_is_not_decided_again(lena: User, ada: User, sign_in: SignIn, purge: Purge) -> None:
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    client = sign_in(ada)
    client.post(at(purge) + "erase/reject/", {"erasure": request.pk})
    late = client.post(at(purge) + "erase/approve/", {"erasure": request.pk, "is_final": "on"})
    assert (late.status_code, state_of(purge)) == (400, PurgeState.DONE)


def test_only_an_approved_erasure_is_enqueued(
    lena: User, ada: User, sign_in: SignIn, purge: Purge, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued: list[int] = []
    monkeypatch.setattr(tasks.erase_purge, "delay", enqueued.append)
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    fields = {"erasure": request.pk, "is_final": "on"}
    for client, form in ((sign_in(ada), {"erasure": request.pk}), (sign_in(lena), fields)):
        assert client.post(at(purge) + "erase/approve/", form).status_code == 400
    assert enqueued == []
    assert sign_in(ada).post(at(purge) + "erase/approve/", fields).status_code == 302
    assert enqueued == [purge.pk]


def test_a_deleted_message_shows_its_saved_copy(mona: User, sign_in: SignIn, channel: Channel) -> None:
    finished_purge(mona, channel)
    assert f"hello {old_ids(20)[3]}" in read_page(sign_in(mona), f"/channels/{channel.pk}/{old_ids(20)[3]}/")


def test_an_erased_message_is_shown_as_erased(mona: User, sign_in: SignIn, erased: Purge, channel: Channel) -> None:
    url = f"/channels/{channel.pk}/{old_ids(20)[3]}/"
    for _ in range(2):
        shown = read_page(sign_in(mona), url)
        assert re.search(r"\d\d:\d\d</time></span>\s*<span>\s*The text of this message can no longer be read\.", shown)
        assert ', approved by <bdi class="staff-name">ada-' in shown
        assert "Restore this message" not in shown
        assert f"hello {old_ids(20)[3]}" not in shown
        listed = read_page(sign_in(mona), at(erased) + "messages/")
        assert listed.count(">permanently deleted<") >= 20
        assert "hello " not in listed
        erase_purge(erased.pk)
    assert at(erased) in read_page(sign_in(mona), f"/purges/?state=erasing&channel={channel.pk}")


def test_a_message_is_not_said_to_be_erased_before_its_copy_is_off_disk(
    mona: User, sign_in: SignIn, erased: Purge, channel: Channel
) -> None:
    client, seen = sign_in(mona), []

    def read() -> None:
        shown = " ".join(read_page(client, f"/channels/{channel.pk}/{old_ids(20)[3]}/").split())
        texts = re.findall("The saved copy (is being permanently|has been unreadable|was permanently)", shown)
        chips = re.findall(">((?:being )?permanently deleted)</span>", shown.split('id="place"')[0])
        seen.append((*texts, *chips))

    read()
    erase_purge(erased.pk)
    read()
    Erasure.objects.filter(purge=erased).update(off_disk_at=Now())
    Purge.objects.filter(pk=erased.pk).update(state=PurgeState.ERASED)
    read()
    assert seen == [
        ("is being permanently", "being permanently deleted"),
        ("has been unreadable", "being permanently deleted"),
        ("was permanently", "permanently deleted"),
    ]


def test_a_partly_restored_purge_says_what_happens_to_which_messages(
    lena: User, ada: User, sign_in: SignIn, purge: Purge
) -> None:
    part = UndoPart(message_ids=tuple(old_ids(20)[:5]))
    request_undo(purge.pk, moderator=purge.moderator, part=part, reason="Appeal accepted")
    run_to_end(purge)
    effect = (
        "Once approved, 15 messages can never be restored or read again. They stay deleted. 5 messages were restored "
        "and are not affected: only their copies are deleted. A permanent deletion cannot be undone."
    )
    assert effect in " ".join(read_page(sign_in(lena), at(purge)).split())
    request_erasure(purge.pk, moderator=lena, reason="request 71")
    shown = " ".join(read_page(sign_in(ada), at(purge)).split())
    assert effect in shown
    assert "Permanently delete 15 messages" in shown


def test_the_offer_to_restore_names_the_request_that_would_end_it(
    lena: User, mona: User, sign_in: SignIn, purge: Purge
) -> None:
    client, sentence = sign_in(mona), "permanent deletion</a> is approved."
    shown = " ".join(read_page(client, at(purge)).split())
    assert "You can restore the deleted messages until" in shown
    assert sentence not in shown
    request_erasure(purge.pk, moderator=lena, reason="request 71")
    assert sentence in " ".join(read_page(client, at(purge)).split())


def test_a_message_that_its_author_withdrew_is_not_counted_as_restored(
    lena: User, ada: User, sign_in: SignIn, purge: Purge, channel: Channel
) -> None:
    withdraw_message(channel.pk, old_ids(20)[0], actor=VICTOR)
    request_undo(
        purge.pk, moderator=purge.moderator, part=UndoPart(message_ids=tuple(old_ids(20)[:5])), reason="Appeal accepted"
    )
    run_to_end(purge)
    request_erasure(purge.pk, moderator=lena, reason="request 71")
    shown = " ".join(read_page(sign_in(ada), at(purge)).split())
    assert "4 messages were restored and are not affected" in shown
    assert "Permanently delete 16 messages" in shown


def test_restored_messages_are_not_reported_as_lost(lena: User, ada: User, sign_in: SignIn, purge: Purge) -> None:
    request_undo(purge.pk, moderator=purge.moderator, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    assert "All messages were restored and are not affected" in read_page(sign_in(lena), at(purge))
    request_and_approve(purge, lena, ada)
    erase_purge(purge.pk)
    assert "Restored 20 messages" in read_page(sign_in(lena), at(purge))
    shown = read_page(sign_in(lena), f"/channels/{purge.selection['channels'][0]}/{old_ids(20)[3]}/")
    assert "was permanently deleted" not in shown
    assert f"hello {old_ids(20)[3]}" in shown
