"""Nothing is restored before a page has shown what comes back and where, and was given a reason."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from chatstore.operations.gateway.messages import withdraw_message
from moderation.domain.filters import Author
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.models import AuditEntry, Purge
from moderation.operations.erasure.requests import open_request, request_erasure
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import CHANNELS_NAMED
from moderation.store.pace import Pace
from moderation.views.undo import MESSAGES_SHOWN
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    claim,
    confirm,
    everything,
    make_channel,
    name_authors,
    old_ids,
    preview,
    purge_now,
    write,
)
from tests.moderation.steps import finish_step, quarantine_step, stamp_step
from tests.pages.restoring import REASON, restore
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]


@pytest.fixture
def guild() -> Guild:
    return Guild.objects.get_or_create(pk=5_551, defaults={"name": "Tidewalkers"})[0]


@pytest.fixture
def purge(mona: User, guild: Guild) -> Purge:
    """Purge 30 messages of Victor and 10 of Wilma from two channels of a guild."""
    name_authors()
    channels, ids = (make_channel(), make_channel()), old_ids(40)
    Channel.objects.filter(pk__in=[channel.pk for channel in channels]).update(guild=guild)
    write(channels[0], ids[:25])
    write(channels[1], ids[25:30])
    write(channels[1], ids[30:], author=WILMA)
    both = tuple(channel.pk for channel in channels)
    return purge_now(mona, Selection(channel_ids=both, where=Author((VICTOR, WILMA))))


def places_of(page: str) -> str:
    """Return the part of the page that says what is restored."""
    return page.partition('aria-label="What is restored"')[2].partition("</section>")[0]


def test_the_page_shows_what_comes_back_and_where_and_restores_nothing(
    purge: Purge, mona: User, sign_in: SignIn
) -> None:
    client = sign_in(mona)
    url = f"/purges/{purge.pk}/undo/"
    assert f'href="{url}"' in client.get(f"/purges/{purge.pk}/").content.decode()
    page = client.get(url).content.decode()
    assert "Restore 40 messages?" in page
    assert "Victor 71" in places_of(page)
    assert "Wilma 72" in places_of(page)
    assert places_of(page).count("Tidewalkers") == 2
    assert client.post(url).status_code == 200
    assert not purge.undos.exists()


def test_an_undo_needs_a_reason_which_is_stored_and_shown(purge: Purge, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    url = f"/purges/{purge.pk}/undo/"
    for missing in ("", "  ", "x" * 1_001):
        refused = client.post(url, {"reason": missing})
        assert refused.status_code == 400
        assert "Restore 40 messages?" in refused.content.decode()
    assert not purge.undos.exists()
    assert restore(client, url) == f"/purges/{purge.pk}/"
    run_purge(purge.pk)
    assert purge.undos.get().reason == REASON
    assert AuditEntry.objects.get(purge=purge, action="undo_requested").details["reason"] == REASON
    page = client.get(f"/purges/{purge.pk}/").content.decode()
    assert f"“<bdi>{REASON}</bdi>”" in page
    assert f'<time datetime="{purge.undos.get().requested_at.isoformat()}"' in page


def test_a_sum_is_shown_only_if_it_has_several_parts(purge: Purge, mona: User, sign_in: SignIn) -> None:
    client, path = sign_in(mona), f"/purges/{purge.pk}/"
    restore(client, f"{path}undo/")
    run_purge(purge.pk)
    page = client.get(path).content.decode()
    assert "<b>40</b><span>restored</span>" in page
    assert "<span>requested</span>" not in page
    purge.undos.update(restored=35, withdrawn=5)
    page = client.get(path).content.decode()
    assert "<b>5</b><span>deleted by their authors</span>" in page
    assert "<b>40</b><span>requested</span>" in page


def test_a_form_that_is_sent_twice_leads_to_the_undo_under_way(purge: Purge, mona: User, sign_in: SignIn) -> None:
    client, url = sign_in(mona), f"/purges/{purge.pk}/undo/"
    assert restore(client, url) == f"/purges/{purge.pk}/"
    second = client.post(url, {"reason": REASON})
    assert second["Location"] == f"/purges/{purge.pk}/?undo=earlier"
    page = client.get(second["Location"]).content.decode()
    assert "Restoring these messages was already requested, as shown below. Nothing was done twice." in page
    assert "Restoring 40 messages" in page
    assert purge.undos.count() == 1
    # So does the browser's button "back".
    assert client.get(url)["Location"] == second["Location"]


def test_a_second_person_is_led_to_the_undo_of_the_first(purge: Purge, mona: User, lena: User, sign_in: SignIn) -> None:
    url, first, second = f"/purges/{purge.pk}/undo/", sign_in(mona), sign_in(lena)
    # Both have the page open.
    assert second.get(url).status_code == 200
    restore(first, url)
    for late in (second.post(url, {"reason": REASON}), second.get(url), second.get(f"{url}?author={WILMA}")):
        assert late["Location"] == f"/purges/{purge.pk}/?undo=earlier"
    run_purge(purge.pk)
    assert second.post(url, {"reason": REASON})["Location"] == f"/purges/{purge.pk}/?undo=earlier"
    assert purge.undos.get().moderator == mona


def test_another_part_is_refused_while_an_undo_is_under_way(purge: Purge, mona: User, sign_in: SignIn) -> None:
    client, url = sign_in(mona), f"/purges/{purge.pk}/undo/"
    restore(client, f"{url}?author={WILMA}")
    refused = client.post(url, {"author": str(VICTOR), "reason": REASON})
    assert refused.status_code == 400
    assert "present state: restoring" in refused.content.decode()


def test_a_part_is_named_on_the_page(purge: Purge, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    second = purge.steps.order_by("-channel_id").values_list("channel_id", flat=True)[0]
    url = f"/purges/{purge.pk}/undo/"
    by_wilma = client.get(f"{url}?author={WILMA}").content.decode()
    assert "Restore 10 messages?" in by_wilma
    assert "Wilma 72" in places_of(by_wilma)
    assert "Victor 71" not in places_of(by_wilma)
    in_second = client.get(f"{url}?channel={second}").content.decode()
    assert places_of(in_second).count("Tidewalkers") == 1
    selected = client.post(url, {"selected": "1", "message_id": [str(i) for i in old_ids(40)[:3]]}).content.decode()
    assert "Restore 3 messages?" in selected
    assert restore(client, f"{url}?author={WILMA}") == f"/purges/{purge.pk}/"
    run_purge(purge.pk)
    assert purge.undos.get().restored == 10
    # Victor's messages are what is left to restore.
    page = client.get(url).content.decode()
    assert "Restore 30 messages?" in page
    assert "Wilma 72" not in places_of(page)
    assert restore(client, f"{url}?channel={second}") == f"/purges/{purge.pk}/"
    run_purge(purge.pk)
    assert places_of(client.get(url).content.decode()).count("Tidewalkers") == 1


def test_the_page_of_a_paused_purge_says_that_the_rest_is_cancelled(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, [*old_ids(150, buckets_ago=4), *old_ids(150, buckets_ago=3)])
    purge = confirm(mona, preview(mona, Selection(channel_ids=(channel.pk,), where=Author((VICTOR,)))))
    step = claim(purge)
    stamp_step(step, quarantine_step(step, pace=Pace(10_000)))
    finish_step(step, pace=Pace(10_000))
    pause_purge(purge.pk, moderator=mona)
    page = sign_in(mona).get(f"/purges/{purge.pk}/undo/").content.decode()
    assert "Restore 150 messages?" in page
    assert "cancels the rest of the paused purge" in page


def test_the_page_says_that_restoring_ends_a_request_for_permanent_deletion(
    purge: Purge, mona: User, lena: User, sign_in: SignIn
) -> None:
    client, url = sign_in(mona), f"/purges/{purge.pk}/undo/"
    assert "Permanent deletion" not in client.get(url).content.decode()
    request_erasure(purge.pk, moderator=lena, reason="reported as illegal")
    page = client.get(url).content.decode()
    assert f'<a href="/purges/{purge.pk}/#erasure-request">Permanent deletion</a>' in page
    assert "Restoring any of them ends that request." in page
    restore(client, url)
    assert open_request(purge) is None


def test_only_the_channels_with_most_messages_are_named(mona: User, guild: Guild, sign_in: SignIn) -> None:
    channels = [make_channel() for _ in range(CHANNELS_NAMED + 3)]
    for number, channel in enumerate(channels, 1):
        write(channel, old_ids(number))
    every = tuple(channel.pk for channel in channels)
    purge = purge_now(mona, Selection(channel_ids=every, where=Author((VICTOR,))))
    page = sign_in(mona).get(f"/purges/{purge.pk}/undo/").content.decode()
    assert [f'href="/channels/{channel.pk}/#end"' in page for channel in channels] == [False] * 3 + [True] * 5
    assert "and 3 more channels" in page


def test_hostile_names_and_reasons_are_harmless(mona: User, sign_in: SignIn) -> None:
    hostile, author, channel = "<script>alert(1)</script>", secrets.randbits(50), make_channel()
    ChatUser.objects.create(pk=author, name=f"eve.{author}", display_name=hostile)
    write(channel, old_ids(3), author=author)
    purge = purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((author,))))
    Purge.objects.filter(pk=purge.pk).update(reason=hostile)
    client = sign_in(mona)
    check_harmless(client.get(f"/purges/{purge.pk}/undo/").content.decode())
    check_harmless(client.post(f"/purges/{purge.pk}/undo/", {"reason": hostile * 60}).content.decode())
    client.post(f"/purges/{purge.pk}/undo/", {"reason": hostile})
    check_harmless(client.get(f"/purges/{purge.pk}/").content.decode())


def purge_ids(purge: Purge) -> set[int]:
    return {message_id for step in purge.steps.all() for message_id in unpack_ids(step.ids)}


def sample_of(page: str) -> str:
    """Return the messages that the page shows of those that come back."""
    return page.partition('aria-labelledby="sample"')[2].partition("</section>")[0]


def test_the_page_shows_some_of_the_messages_that_come_back(purge: Purge, mona: User, sign_in: SignIn) -> None:
    client, url = sign_in(mona), f"/purges/{purge.pk}/undo/"
    sample = sample_of(client.get(url).content.decode())
    assert "Some of the messages" in sample
    assert sample.count('class="entry deleted"') == MESSAGES_SHOWN
    assert 'type="checkbox"' not in sample
    by_wilma = sample_of(client.get(f"{url}?author={WILMA}").content.decode())
    assert by_wilma.count(f'data-author="{WILMA}"') == MESSAGES_SHOWN
    assert f'data-author="{VICTOR}"' not in by_wilma
    assert f'href="/purges/{purge.pk}/messages/?author={WILMA}"' in by_wilma
    # All of a few.
    chosen = sorted(purge_ids(purge))[:2]
    page = client.post(url, {"selected": "1", "message_id": [str(i) for i in chosen]}).content.decode()
    assert re.findall(r'id="m(\d+)"', sample_of(page)) == [str(i) for i in chosen]
    assert "Some of the messages" not in page


def test_the_sample_leaves_out_what_does_not_come_back(purge: Purge, mona: User, sign_in: SignIn) -> None:
    client, url = sign_in(mona), f"/purges/{purge.pk}/undo/"
    restored, withdrawn = sorted(purge_ids(purge))[-2:]
    (channel_id,) = (step.channel_id for step in purge.steps.all() if withdrawn in unpack_ids(step.ids))
    withdraw_message(channel_id, withdrawn, actor=WILMA)
    restore(client, f"{url}?message_ids={restored}")
    run_purge(purge.pk)
    page = client.get(f"{url}?author={WILMA}").content.decode()
    shown = re.findall(r'id="m(\d+)"', sample_of(page))
    assert len(shown) == MESSAGES_SHOWN
    assert not {str(withdrawn), str(restored)} & set(shown)


def test_hostile_messages_are_shown_as_text_before_they_come_back(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(2), content="<script>alert(1)</script>\u202e [x](javascript:alert(1))")
    purge = purge_now(mona, everything(channel))
    page = sign_in(mona).get(f"/purges/{purge.pk}/undo/").content.decode()
    check_harmless(page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in sample_of(page)


def test_reading_the_sample_is_recorded(purge: Purge, mona: User, sign_in: SignIn) -> None:
    sign_in(mona).get(f"/purges/{purge.pk}/undo/")
    assert AuditEntry.objects.filter(purge=purge, actor=mona, action="copies_read").count() == 1
