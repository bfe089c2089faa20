"""Leads see on every page that a purge waits for their approval; for other accounts no statement is executed."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatstore.domain.roles import Role
from chatstore.models import Channel, Finding
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from moderation.models import PurgeApproval
from moderation.operations.purging.approvals import (
    APPROVAL_REQUEST,
    approve_purge,
    check_approvals,
    open_approvals,
    reject_approval,
    withdraw_approval,
)
from moderation.views.findings import list_findings
from tests.conftest import make_user
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request
from tests.pages.reading import read_page
from tests.plans import explain

SignIn = Callable[[User], Client]

NOTICE = "page-notice warning"


def page(client: Client, url: str = "/preferences/") -> str:
    return read_page(client, url)


def test_a_lead_is_told_on_every_page_until_it_is_decided(
    mona: User, lena: User, asked: PurgeApproval, channel: Channel, sign_in: SignIn
) -> None:
    client = sign_in(lena)
    for url in ("/", "/holds/", "/preferences/", f"/channels/{channel.pk}/"):
        shown = page(client, url)
        assert "requests approval to delete 20 messages" in shown
        assert f'href="/purges/{asked.purge_id}/#approval"' in shown
    own_page = page(client, f"/purges/{asked.purge_id}/")
    (fetched,) = re.findall(r'id="notices"\s+hx-get="([^"]+)"', own_page)
    assert NOTICE not in own_page
    assert NOTICE not in page(client, fetched)
    assert NOTICE in page(client, "/notices/")
    assert f'data-keys="approval-{asked.pk}"' in page(client)
    second = request(mona, preview_some(mona, 19, channel))
    assert re.search(rf'data-keys="approval-{asked.pk} approval-{second.pk}"', page(client))
    assert "2 purges wait for approval" in page(client)
    reject_approval(second.purge_id, second.pk, approver=lena, reason="No")
    approve_purge(asked.purge_id, asked.pk, approver=lena)
    assert NOTICE not in page(client)


def test_other_people_are_not(mona: User, asked: PurgeApproval, channel: Channel, sign_in: SignIn) -> None:
    limit(channel, Role.LEAD, messages_without_approval=10)
    requester = member("lea", Role.LEAD, channel)
    own = request(requester, preview_some(requester, 20, channel))
    elsewhere = member("leo", Role.LEAD, make_guild_channel("Quarry"))
    for person in (mona, elsewhere):
        assert NOTICE not in page(sign_in(person))
    assert open_approvals(requester) == [asked]
    assert own not in open_approvals(requester)


def test_it_costs_one_statement_and_none_for_those_who_cannot_approve(
    mona: User, lena: User, asked: PurgeApproval, sign_in: SignIn
) -> None:
    read = {}
    for person in (mona, lena):
        client = sign_in(person)
        with CaptureQueriesContext(connection) as captured:
            page(client)
        read[person] = [query["sql"] for query in captured if "moderation_purgeapproval" in query["sql"]]
    assert (len(read[mona]), len(read[lena])) == (0, 1)


def test_the_statement_uses_indexes(lena: User, asked: PurgeApproval) -> None:
    assert asked in open_approvals(lena)
    statements = explain(lambda: open_approvals(lena))
    assert [one.scanned for one in statements if "moderation_purgeapproval" in one.sql] == [frozenset()]


def test_an_open_request_is_notified_as_raids_are(lena: User, asked: PurgeApproval) -> None:
    found = Finding.objects.open().filter(kind=APPROVAL_REQUEST, subject=f"{asked.purge_id}:{asked.pk}")
    check_approvals(timezone.now())
    assert "requests approval to delete 20 messages" in found.get().summary
    lines, _others = list_findings(make_user("ada", group="admins"), limit=1_000)
    assert [line.links[0].url for line in lines if line.finding == found.get()] == [f"/purges/{asked.purge_id}/"]
    approve_purge(asked.purge_id, asked.pk, approver=lena)
    check_approvals(timezone.now())
    assert not found.exists()


def test_one_that_is_made_again_between_two_checks_is_notified_again(mona: User, asked: PurgeApproval) -> None:
    check_approvals(timezone.now())
    Finding.objects.filter(kind=APPROVAL_REQUEST).update(notified_at=ClockTimestamp(), mailed_at=ClockTimestamp())
    withdraw_approval(asked.purge_id, asked.pk, moderator=mona)
    again = request(mona, asked.purge)
    check_approvals(timezone.now())
    found = Finding.objects.filter(kind=APPROVAL_REQUEST, subject__startswith=f"{asked.purge_id}:").order_by("id")
    assert [(one.closed_at is None, one.details["approval"], one.notified_at is None) for one in found] == [
        (False, str(asked.pk), False),
        (True, str(again.pk), True),
    ]
