"""The filters of the list of purges have the words of its rows, and select exactly the purges that are called so."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models.users import User
from moderation.domain.state_labels import AWAITING_APPROVAL, DISCARDED, label_of_state
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.purging.lifecycle import discard_preview
from tests.conftest import make_user
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]


@pytest.fixture
def moderator() -> User:
    """Return a moderator with a purge in each state, and previews that were discarded and that wait for approval."""
    channel = make_guild_channel()
    account = member("max", Role.MODERATOR, channel)
    limit(channel, messages_without_approval=3)
    request(account, preview_some(account, 5, channel))
    discard_preview(preview_some(account, 2, channel).pk, moderator=account)
    for state in PurgeState:
        Purge.objects.filter(pk=preview_some(account, 1, channel).pk).update(state=state)
    return account


def rows_of(page: str) -> list[tuple[str, str]]:
    """Return the IDs and the states of the listed purges."""
    rows = re.findall(r'class="title" href="/purges/(-?\d+)/".*?<span class="chip [^"]*">(.*?)</span>', page, re.DOTALL)
    return [(pk, html.unescape(label)) for pk, label in rows]


def filters_of(page: str) -> dict[str, str]:
    """Return the names of the filters by state, by their labels."""
    part = page.split('class="filters"')[1].split("</nav>", maxsplit=1)[0]
    found = re.findall(r'<a href="\?[^"]*state=(\w+)[^"]*"[^>]*>(.*?)</a>', part, re.DOTALL)
    return {html.unescape(" ".join(label.split())): name for name, label in found}


def test_each_filter_selects_exactly_the_rows_that_are_called_so(moderator: User, sign_in: SignIn) -> None:
    client, by = sign_in(moderator), f"by={moderator.username}"
    page = read_html(client, f"/purges/?{by}")
    rows, filters = rows_of(page), filters_of(page)
    assert {label[:1].upper() + label[1:] for _, label in rows} == set(filters)
    for label, name in filters.items():
        assert rows_of(read_html(client, f"/purges/?{by}&state={name}")) == [
            row for row in rows if row[1].lower() == label.lower()
        ], label


def test_the_filters_of_the_admin_are_those_of_the_list(moderator: User, sign_in: SignIn) -> None:
    client, path = sign_in(make_user("ada", group="admins")), "/admin/moderation/purge/"
    own = set(Purge.objects.filter(moderator=moderator).values_list("pk", flat=True))
    for name in (AWAITING_APPROVAL, DISCARDED, PurgeState.READY, PurgeState.EXPIRED, PurgeState.DONE):
        page = read_html(client, f"{path}?state={name}&q={moderator.username}")
        listed = {int(pk) for pk in re.findall(rf"{path}(-?\d+)/", page)} & own
        assert len(listed) == 1, name
        # An administrator may approve the purge of another account.
        label = str(label_of_state(name, awaits_viewer=True))
        assert label in read_html(client, f"{path}{listed.pop()}/change/")


@pytest.mark.parametrize("state", ["failed", "erase"])
def test_an_unknown_state_is_refused(mona: User, sign_in: SignIn, state: str) -> None:
    response = sign_in(mona).get(f"/purges/?state={state}")
    assert response.status_code == 400
    assert "Choose one of the filters" in response.content.decode()
