"""Home tells purges that wait for the user from those in progress, and lists previews of other moderators nowhere."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.domain.roles import Role
from chatstore.models.users import User
from moderation.models import Purge
from moderation.operations.purging.controls import pause_purge
from moderation.presentation.formats import format_deadline
from tests.conftest import give
from tests.moderation.channels import confirm, everything, make_channel, old_ids, preview, write
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request
from tests.pages.reading import read_page

SignIn = Callable[[User], Client]


def place_of(purge: Purge, client: Client) -> str:
    """Return the id of the heading below which Home lists a purge; "" if it does not."""
    return next((heading for heading, purge_id in places_of(client, "/") if purge_id == purge.pk), "")


def places_of(client: Client, url: str) -> list[tuple[str, int]]:
    """Return the purges of a page, each with the id of its heading."""
    heading, places = "", []
    for found, purge_id in re.findall(r'<h2 id="([\w-]+)"|href="/purges/(-?\d+)/"', read_page(client, url)):
        heading = found or heading
        if purge_id:
            places.append((heading, int(purge_id)))
    return places


def test_the_list_of_purges_has_the_same_ones_for_the_viewer(sign_in: SignIn) -> None:
    channel = make_guild_channel()
    limit(channel, messages_without_approval=10)
    moderator, lead = member("max", Role.MODERATOR, channel), member("lea", Role.LEAD, channel)
    paused = confirm(moderator, preview_some(moderator, 5, channel))
    pause_purge(paused.pk, moderator=moderator)
    asked, own = preview_some(moderator, 20, channel), preview_some(lead, 4, channel)
    request(moderator, asked)
    client = sign_in(lead)
    waiting = [purge_id for heading, purge_id in places_of(client, "/") if heading == "attention"]
    assert waiting == [asked.pk, own.pk, paused.pk]
    # The list of all purges, which has no heading, follows.
    assert [purge_id for _, purge_id in places_of(client, "/purges/")][: len(waiting)] == waiting
    filtered = [heading for heading, _ in places_of(client, f"/purges/?by={moderator.username}")]
    assert "attention" not in filtered


def test_only_ones_own_previews_are_listed(mona: User, lena: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(5))
    purge = preview(mona, everything(channel))
    link = f'href="/purges/{purge.pk}/"'
    assert place_of(purge, sign_in(mona)) == "attention"
    assert place_of(purge, sign_in(lena)) == ""
    # Everybody finds it in the list, and sees it once it is confirmed.
    assert link in read_page(sign_in(lena), "/purges/?state=ready")
    confirm(mona, purge)
    assert place_of(purge, sign_in(lena)) == "in-progress"


def test_a_purge_needs_attention_only_while_a_person_has_to_act(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(5))
    purge, client = confirm(mona, preview(mona, everything(channel))), sign_in(mona)
    assert place_of(purge, client) == "in-progress"
    pause_purge(purge.pk, moderator=mona)
    assert place_of(purge, client) == "attention"


def test_a_paused_purge_waits_only_for_those_who_may_resume_it(sign_in: SignIn) -> None:
    channel = make_guild_channel()
    moderator, auditor = member("max", Role.MODERATOR, channel), member("aron", Role.AUDITOR, channel)
    purge = confirm(moderator, preview_some(moderator, 5, channel))
    pause_purge(purge.pk, moderator=moderator)
    assert place_of(purge, sign_in(moderator)) == "attention"
    assert place_of(purge, sign_in(auditor)) == "in-progress"


def test_a_preview_that_another_person_must_approve_waits_for_that_person(sign_in: SignIn) -> None:
    channel = make_guild_channel()
    limit(channel, messages_without_approval=10)
    moderator, lead = member("max", Role.MODERATOR, channel), member("lea", Role.LEAD, channel)
    purge = preview_some(moderator, 20, channel)
    assert place_of(purge, sign_in(moderator)) == "attention"
    request(moderator, purge)
    assert place_of(purge, sign_in(moderator)) == "in-progress"
    assert place_of(purge, sign_in(lead)) == "attention"


def test_a_purge_that_waits_for_approval_is_in_progress_for_those_who_may_see_it(sign_in: SignIn) -> None:
    channel, other = make_guild_channel(), make_guild_channel()
    limit(channel, messages_without_approval=10)
    moderator, lead = member("max", Role.MODERATOR, channel), member("lea", Role.LEAD, channel)
    second, auditor = member("mia", Role.MODERATOR, channel), member("aron", Role.AUDITOR, channel)
    outsider, clients = member("olga", Role.AUDITOR, other), {}
    running, purge = confirm(moderator, preview_some(moderator, 5, channel)), preview_some(moderator, 20, channel)
    statements = {}
    for viewer in (second, auditor, outsider):
        clients[viewer] = sign_in(viewer)
        assert place_of(purge, clients[viewer]) == ""
        statements[viewer] = count_statements(clients[viewer])
    request(moderator, purge)
    for viewer in (second, auditor):
        assert places_of(clients[viewer], "/")[:2] == [("in-progress", purge.pk), ("in-progress", running.pk)]
        line = read_page(clients[viewer], "/").split(f'href="/purges/{purge.pk}/"')[1].split("</li>")[0]
        assert ">waiting for approval</span>" in line
    assert place_of(purge, clients[outsider]) == ""
    # An approver has it once, where it needs attention.
    assert [heading for heading, found in places_of(sign_in(lead), "/") if found == purge.pk] == ["attention"]
    for viewer, client in clients.items():
        assert count_statements(client) <= statements[viewer], viewer


def test_who_may_not_purge_has_no_empty_list_above_what_is_in_progress(sign_in: SignIn) -> None:
    channel = make_guild_channel()
    moderator, auditor = member("max", Role.MODERATOR, channel), member("aron", Role.AUDITOR, channel)
    confirm(moderator, preview_some(moderator, 5, channel))
    assert 'id="attention"' in read_page(sign_in(moderator), "/")
    page = read_page(sign_in(auditor), "/")
    assert 'id="attention"' not in page
    assert 'id="in-progress"' in page


def test_who_may_approve_on_one_server_sees_what_waits_on_another_in_progress(sign_in: SignIn) -> None:
    led, seen = make_guild_channel(), make_guild_channel()
    limit(led, messages_without_approval=10)
    limit(seen, messages_without_approval=10)
    lead = member("lea", Role.LEAD, led)
    give(lead, Role.AUDITOR, guild_id=seen.guild_id)
    purges = []
    for name, channel in (("max", led), ("mia", seen)):
        moderator = member(name, Role.MODERATOR, channel)
        purges.append(preview_some(moderator, 20, channel))
        request(moderator, purges[-1])
    client = sign_in(lead)
    assert places_of(client, "/")[:2] == [("attention", purges[0].pk), ("in-progress", purges[1].pk)]


def count_statements(client: Client) -> int:
    with CaptureQueriesContext(connection) as found:
        read_page(client, "/")
    return len(found)


def test_ones_own_request_shows_its_reason_and_until_when_it_waits(sign_in: SignIn) -> None:
    channel = make_guild_channel()
    limit(channel, messages_without_approval=10)
    moderator = member("max", Role.MODERATOR, channel)
    purge = preview_some(moderator, 20, channel)
    assert "another person’s approval" not in read_page(sign_in(moderator), "/")
    approval = request(moderator, purge)
    line = re.search(
        r"Waits until <time [^>]+>([^<]+)</time> for another person’s approval: “([^”]+)”",
        read_page(sign_in(moderator), "/"),
    )
    assert line is not None
    assert line.groups() == (format_deadline(approval.expires_at), approval.reason)
