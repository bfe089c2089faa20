"""Long lists of the admin are paged by key, from the newest row to the oldest, without a count."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.admin_lists import ROWS_A_PAGE
from chatstore.models.users import User
from moderation.models import AuditEntry

SignIn = Callable[[User], Client]

ENTRIES = "/admin/moderation/auditentry/"
OLDER = re.compile(r'href="\?([^"]*before=[^"]*)"')


def entries_on(page: str) -> list[int]:
    return [int(entry_id) for entry_id in re.findall(rf'href="{ENTRIES}(\d+)/change/', page)]


def test_pages_follow_one_another_without_a_gap(ada: User, sign_in: SignIn) -> None:
    made = [AuditEntry.objects.create(action="hold_placed", actor=ada).pk for _ in range(ROWS_A_PAGE + 20)]
    client = sign_in(ada)
    page = client.get(f"{ENTRIES}?q={ada.username}").content.decode()
    first = entries_on(page)
    assert first == made[: -ROWS_A_PAGE - 1 : -1]
    (older,) = OLDER.findall(page)
    rest = client.get(f"{ENTRIES}?{older.replace('&amp;', '&')}").content.decode()
    assert entries_on(rest)[:20] == made[19::-1]


@pytest.mark.parametrize("query", ["", "?action=hold_placed", "?before=no+key"])
def test_a_page_does_not_claim_to_know_the_number_of_rows(query: str, ada: User, sign_in: SignIn) -> None:
    AuditEntry.objects.create(action="hold_placed", actor=ada)
    page = sign_in(ada).get(ENTRIES + query).content.decode()
    assert entries_on(page)
    assert "Show all" not in page
    assert not re.search(r"\d results?", page)


def test_actions_have_labels(ada: User, sign_in: SignIn) -> None:
    AuditEntry.objects.create(action="hold_placed", actor=ada)
    page = sign_in(ada).get(ENTRIES).content.decode()
    assert "Hold placed" in page
    assert ">hold_placed<" not in page
