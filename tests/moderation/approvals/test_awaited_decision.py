"""The page of a preview that waits for approval polls, and is reloaded by the decision."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.models import Purge, PurgeApproval
from moderation.operations.purging.approvals import approve_purge, reject_approval, withdraw_approval
from moderation.operations.purging.lifecycle import discard_preview
from tests.moderation.limits import preview_some, request

SignIn = Callable[[User], Client]


def poll_url(client: Client, purge: Purge) -> str:
    page = html.unescape(client.get(f"/purges/{purge.pk}/").content.decode())
    found = re.search(rf'hx-get="(/purges/{purge.pk}/live/\?version=[^"]+)"\s+hx-trigger="every 3s"', page)
    assert found
    return found[1]


def test_an_unchanged_request_answers_204_with_one_statement_of_the_purge(
    mona: User, asked: PurgeApproval, sign_in: SignIn
) -> None:
    client = sign_in(mona)
    url = poll_url(client, asked.purge)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url, headers={"HX-Request": "true"}).status_code == 204
    assert sum("moderation_purge" in query["sql"] for query in captured) == 1


DECISIONS: dict[str, Callable[[PurgeApproval, User, User], object]] = {
    "approved": lambda asked, _mona, lena: approve_purge(asked.purge_id, asked.pk, approver=lena),
    "rejected": lambda asked, _mona, lena: reject_approval(asked.purge_id, asked.pk, approver=lena, reason="No"),
    "withdrawn": lambda asked, mona, _lena: withdraw_approval(asked.purge_id, asked.pk, moderator=mona),
    "discarded": lambda asked, mona, _lena: discard_preview(asked.purge_id, moderator=mona),
}


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("viewer", ["mona", "lena"])
def test_the_decision_reloads_the_page(
    *, decision: str, viewer: str, mona: User, lena: User, asked: PurgeApproval, sign_in: SignIn
) -> None:
    client = sign_in({"mona": mona, "lena": lena}[viewer])
    url = poll_url(client, asked.purge)
    DECISIONS[decision](asked, mona, lena)
    response = client.get(url, headers={"HX-Request": "true"})
    assert (response.status_code, response["HX-Trigger"]) == (200, "reloadPage")


def test_another_request_reloads_the_page_of_the_first(
    mona: User, lena: User, asked: PurgeApproval, sign_in: SignIn
) -> None:
    client = sign_in(lena)
    url = poll_url(client, asked.purge)
    withdraw_approval(asked.purge_id, asked.pk, moderator=mona)
    request(mona, asked.purge, reason="Another reason")
    assert client.get(url)["HX-Trigger"] == "reloadPage"


def test_a_preview_without_a_request_does_not_poll(mona: User, channel: Channel, sign_in: SignIn) -> None:
    page = sign_in(mona).get(f"/purges/{preview_some(mona, 20, channel).pk}/").content.decode()
    assert "/live/?" not in page


def test_without_script_the_page_of_the_person_who_decides_is_not_reloaded(
    mona: User, lena: User, asked: PurgeApproval, sign_in: SignIn
) -> None:
    refreshes = [
        'http-equiv="refresh"' in sign_in(user).get(f"/purges/{asked.purge_id}/").content.decode()
        for user in (mona, lena)
    ]
    assert refreshes == [True, False]
