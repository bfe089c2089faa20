"""Lists of purges say how many messages were deleted if that is not the number that the selection matched."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models.users import User
from moderation.models import Purge
from moderation.operations.holds import HoldRequest, lift_hold, place_hold
from moderation.operations.purging.controls import cancel_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    confirm,
    everything,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.moderation.limits import make_guild_channel, member
from tests.pages.reading import read_page

SignIn = Callable[[User], Client]


def note_on(purge: Purge, page: str) -> str | None:
    """Return what a list says about the number of deleted messages in the line of a purge."""
    link = f'href="/purges/{purge.pk}/"'
    (line,) = [line for line in re.findall(r'<div class="purge-line">.*?</div>', page, re.DOTALL) if link in line]
    found = re.search(r"[\d,]+ of [\d,]+ deleted", line)
    return found and found[0]


def test_held_messages_are_not_counted(sign_in: SignIn) -> None:
    channel = make_guild_channel()
    moderator, lead = member("max", Role.MODERATOR, channel), member("lea", Role.LEAD, channel)
    write(channel, old_ids(7, buckets_ago=4), author=WILMA)
    purge = preview(moderator, everything(channel))
    hold = place_hold(HoldRequest(str(VICTOR), str(channel.pk), ""), reason="Case", actor=lead)
    run_to_end(confirm(moderator, purge))
    lift_hold(hold.pk, reason="Closed", actor=lead)
    purge.refresh_from_db()
    assert purge.state == "done_with_failures"
    for path in ("/", "/purges/"):
        assert note_on(purge, read_page(sign_in(moderator), path)) == "7 of 27 deleted"


def test_a_purge_that_deleted_all_has_its_number_once(sign_in: SignIn) -> None:
    channel = make_guild_channel()
    moderator = member("max", Role.MODERATOR, channel)
    purge = purge_now(moderator, everything(channel))
    assert note_on(purge, read_page(sign_in(moderator), "/")) is None


def test_a_cancelled_purge_and_one_restored_in_part_say_what_is_deleted_still(sign_in: SignIn) -> None:
    channels = [make_guild_channel(), make_guild_channel()]
    moderator = member("max", Role.MODERATOR, *channels)
    cancelled = confirm(moderator, preview(moderator, everything(channels[0])))
    cancel_purge(cancelled.pk, moderator=moderator)
    run_to_end(cancelled)
    partly = purge_now(moderator, everything(channels[1]))
    request_undo(partly.pk, moderator=moderator, part=UndoPart(message_ids=tuple(old_ids(20)[:3])), reason="Appeal")
    run_to_end(partly)
    page = read_page(sign_in(moderator), "/purges/")
    assert (note_on(cancelled, page), note_on(partly, page)) == ("0 of 20 deleted", "17 of 20 deleted")
