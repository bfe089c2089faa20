"""The notice counts what Home lists as waiting for the viewer's approval: purges and permanent deletions."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.models import PurgeApproval
from moderation.operations.erasure.requests import ERASE, open_requests, reject_erasure, request_erasure
from moderation.operations.purging import approvals
from moderation.operations.purging.approvals import reject_approval
from tests.conftest import give
from tests.moderation.erasures import finished_purge
from tests.moderation.limits import make_guild_channel, member, preview_some, request
from tests.pages.reading import read_page
from tests.plans import explain

SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


def notice_of(page: str) -> str:
    """Return the text of the notice; "" if there is none."""
    found = re.search(r'<p class="page-notice warning">.*?<span class="dotted">(.*?)</span>\s*<a ', page, re.DOTALL)
    return " ".join((re.sub(r"<[^>]+>", "", found[1]) if found else "").split())


def test_the_notice_and_home_agree(lena: User, asked: PurgeApproval, sign_in: SignIn) -> None:
    here = [make_guild_channel(name) for name in ("Quarry", "Foundry", "Harbor")]
    elsewhere = make_guild_channel("Elsewhere")
    lead, moderator = member("lea", Role.LEAD, *here, elsewhere), member("max", Role.MODERATOR, *here, elsewhere)
    for channel in here:
        give(lena, Role.LEAD, guild_id=channel.guild_id)
    purges = [finished_purge(moderator, channel) for channel in (*here, elsewhere)]
    requests = [request_erasure(purge.pk, moderator=lead, reason="request 71") for purge in purges[:2]]
    own = request_erasure(purges[2].pk, moderator=lena, reason="request 72")
    unseen = request_erasure(purges[3].pk, moderator=lead, reason="request 73")
    client = sign_in(lena)

    home = read_page(client, "/")
    assert notice_of(home) == "1 purge and 2 permanent deletions wait for approval"
    assert home.count("#approval") + home.count("#erasure-request") == 3
    assert 'href="/#attention"' in home
    assert 'id="attention"' in home
    assert not {own, unseen} & set(open_requests(lena))
    for url in ("/purges/", "/holds/", "/preferences/"):
        assert notice_of(read_page(client, url)) == notice_of(home)
    # The page of a request shows it itself.
    assert notice_of(read_page(client, f"/purges/{requests[0].purge_id}/")) == (
        "1 purge and 1 other permanent deletion wait for approval"
    )

    reject_approval(asked.purge_id, asked.pk, approver=lena, reason="No")
    assert notice_of(read_page(client, "/preferences/")) == "2 permanent deletions wait for approval"
    reject_erasure(requests[0].purge_id, requests[0].pk, moderator=lena)
    single = read_page(client, "/preferences/")
    assert notice_of(single) == f"{lead.username} requests permanent deletion"
    assert f'href="/purges/{requests[1].purge_id}/#erasure-request"' in single
    reject_erasure(requests[1].purge_id, requests[1].pk, moderator=lena)


def test_the_number_is_a_lower_bound_if_more_may_wait_than_are_read(
    lena: User, asked: PurgeApproval, channel: Channel, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [member(name, Role.MODERATOR, channel) for name in ("max", "moe")]
    for moderator in others:
        request(moderator, preview_some(moderator, 20, channel))
    client = sign_in(lena)
    assert notice_of(read_page(client, "/")) == "3 purges wait for approval"
    assert notice_of(read_page(client, f"/purges/{asked.purge_id}/")) == "2 other purges wait for approval"
    monkeypatch.setattr(approvals, "MAX_REQUESTS", 2)
    for url in ("/", "/purges/", "/preferences/"):
        assert notice_of(read_page(client, url)) == "2 or more purges wait for approval"


def test_reading_them_costs_one_statement_which_finds_purges_by_an_index(lena: User) -> None:
    assert lena.has_perm(ERASE)
    statements = explain(lambda: open_requests(lena))
    read = [statement for statement in statements if "moderation_erasure" in statement.sql]
    assert [statement.scanned - {"moderation_erasure"} for statement in read] == [frozenset()]
