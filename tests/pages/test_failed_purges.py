"""A purge of which messages failed waits for those who can retry it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.purging.controls import retry_purge
from moderation.operations.purging.execution import WRITTEN_AGAIN
from tests.moderation.channels import VICTOR, confirm, everything, old_ids, preview, purge_now, run_to_end, write
from tests.moderation.limits import make_guild_channel, member
from tests.moderation.stored_sums import store_sums
from tests.pages.reading import read_page
from tests.pages.test_home_previews import places_of

SignIn = Callable[[User], Client]


def purge_with_failures(moderator: User, channel: Channel) -> Purge:
    """Return a purge that has ended, of which two messages failed."""
    purge = purge_now(moderator, everything(channel))
    failed = {"deleted": 18, "failed": 2, "failed_ids": pack_ids(old_ids(20)[:2]), "error": WRITTEN_AGAIN}
    assert purge.steps.update(**failed) == 1
    store_sums()
    Purge.objects.filter(pk=purge.pk).update(state="done_with_failures")
    return purge


def headings_of(purge: Purge, client: Client, url: str) -> set[str]:
    return {heading for heading, found in places_of(client, url) if found == purge.pk}


def test_failed_messages_need_attention_until_a_retry_and_held_ones_do_not(sign_in: SignIn) -> None:
    channel, other = make_guild_channel(), make_guild_channel()
    moderator, auditor = member("max", Role.MODERATOR, channel, other), member("aron", Role.AUDITOR, channel, other)
    lead = member("lea", Role.LEAD, other)
    failed = purge_with_failures(moderator, channel)
    previewed = preview(moderator, everything(other))
    place_hold(HoldRequest(str(VICTOR), str(other.pk), ""), reason="Case", actor=lead)
    held = run_to_end(confirm(moderator, previewed))
    assert held.state == "done_with_failures"
    client = sign_in(moderator)
    assert headings_of(failed, client, "/") == {"attention"}
    assert "attention" in headings_of(failed, client, "/purges/")
    assert headings_of(held, client, "/") == {"recently-deleted"}
    (line,) = re.findall(
        rf"<li>(?:(?!</li>).)*/purges/{failed.pk}/#failures.*?</li>", read_page(client, "/"), re.DOTALL
    )
    assert "Some messages failed." in line
    # As on its own page.
    assert ">done, 2 failed</span>" in line
    for url in ("", "messages/", "panel/"):
        assert ">done, 2 failed</span>" in read_page(client, f"/purges/{failed.pk}/{url}")
        assert ">done, 20 held</span>" in read_page(client, f"/purges/{held.pk}/{url}")
    assert {">done, 2 failed</span>", ">done, 20 held</span>"} <= set(
        re.findall(r">done, [^<]*</span>", read_page(client, "/purges/"))
    )
    assert "18 of 20 deleted" in line
    assert 'id="failures"' in read_page(client, f"/purges/{failed.pk}/")
    # Those who cannot retry it have it among what was deleted.
    assert headings_of(failed, sign_in(auditor), "/") == {"recently-deleted"}
    retry_purge(failed.pk, moderator=moderator)
    run_to_end(failed)
    assert "attention" not in headings_of(failed, client, "/")


def test_the_period_of_a_failure_opens_the_list_of_its_messages(sign_in: SignIn) -> None:
    channel = make_guild_channel()
    moderator = member("max", Role.MODERATOR, channel)
    purge, client = purge_with_failures(moderator, channel), sign_in(moderator)
    assert purge.steps.update(failed_ids=pack_ids(old_ids(20)[4:6])) == 1
    failures = read_page(client, f"/purges/{purge.pk}/").partition('id="failures"')[2].partition("</li>")[0]
    (url,) = re.findall(rf'<a href="(/purges/{purge.pk}/messages/[^"]*)">\s*<b class="nowrap">', failures)
    listed = read_page(client, html.unescape(url))
    assert "Only messages in <b><bdi>" in listed
    # It begins with the first of them.
    assert re.findall(r'<span class="outcome">([^<]*)<', listed)[:3] == ["failed", "failed", "deleted"]


def test_the_panel_counts_the_messages_of_each_failure(sign_in: SignIn) -> None:
    channels = [make_guild_channel() for _ in range(3)]
    moderator = member("max", Role.MODERATOR, *channels)
    for channel in channels:
        write(channel, old_ids(20))
    every = tuple(channel.pk for channel in channels)
    purge = purge_now(moderator, Selection(channel_ids=every, where=Author((VICTOR,))))
    for step, error, failed in zip(
        purge.steps.all(), (WRITTEN_AGAIN, "unknown", WRITTEN_AGAIN), (2, 1, 3), strict=True
    ):
        purge.steps.filter(ordinal=step.ordinal).update(
            deleted=20 - failed, failed=failed, failed_ids=pack_ids(unpack_ids(step.ids)[:failed]), error=error
        )
    store_sums()
    Purge.objects.filter(pk=purge.pk).update(state="done_with_failures")
    panel = " ".join(read_page(sign_in(moderator), f"/purges/{purge.pk}/panel/").split())
    assert re.findall(r"<b>\s*([^<]+?)\s*</b>", panel) == ["5 messages not deleted.", "1 message not deleted."]
    assert panel.count("They came back after each deletion") == 1
    assert "Failed:" not in panel
