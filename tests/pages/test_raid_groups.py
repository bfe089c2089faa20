"""A group of similar messages on the page of a raid selects exactly the accounts that wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.models.users import User
from moderation.models import Purge
from moderation.views import raid_page
from tests.moderation.channels import now_ms
from tests.moderation.raids import Raid, join_group, write_groups
from tests.pages.test_raid_page import checked, hidden_fields

SignIn = Callable[[User], Client]


def groups_of(html: str) -> list[frozenset[int]]:
    """Return the accounts that each group selects, the largest group first."""
    found = re.findall(r'<button[^>]*\sname="select"\s+value="([\d ]+)"', html)
    return [frozenset(map(int, ids.split())) for ids in found]


def select(client: Client, raid: Raid, html: str, accounts: frozenset[int]) -> str:
    """Return the page after a click without JavaScript: the form is posted as it is, with the value of the button."""
    fields = {
        **hidden_fields(html),
        "account": [str(account) for account in checked(html)],
        "start": re.findall(r'<select id="start".*?value="(\d+)" selected', html, re.DOTALL)[0],
        "end": "",
        "select": " ".join(map(str, sorted(accounts))),
    }
    response = client.post(f"/raids/{raid.channel.pk}/", fields)
    assert response.status_code == 200
    return response.content.decode()


def show_again(client: Client, raid: Raid, html: str, **fields: str) -> str:
    """Return the page after a click on "Show this time" without JavaScript."""
    accounts = [str(account) for account in checked(html)]
    posted = {**hidden_fields(html), "account": accounts, "show": "1", **fields}
    response = client.post(f"/raids/{raid.channel.pk}/", posted)
    assert response.status_code == 200
    return response.content.decode()


def test_without_javascript_its_button_loads_the_page_with_these_accounts_selected(mona: User, sign_in: SignIn) -> None:
    raid, client = write_groups(), sign_in(mona)
    html = client.get(f"/raids/{raid.channel.pk}/").content.decode()
    assert checked(html) == raid.raiders
    assert groups_of(html) == [raid.raiders, raid.members]
    assert "Select only these 3 accounts" in html
    members = select(client, raid, html, raid.members)
    assert checked(members) == raid.members
    # They are in view, with the warning that they are old members.
    assert re.search(r'<details class="more other-accounts" open>', members)
    assert "3 of the selected accounts have been here for over a year." in " ".join(members.split())
    assert checked(select(client, raid, members, raid.raiders)) == raid.raiders
    assert not Purge.objects.filter(moderator=mona).exists()


def test_an_account_that_has_come_since_is_not_selected_with_it(mona: User, sign_in: SignIn) -> None:
    raid, client = write_groups(), sign_in(mona)
    html = client.get(f"/raids/{raid.channel.pk}/").content.decode()
    join_group(raid, minutes_ago=0.1)
    assert checked(select(client, raid, html, raid.raiders)) == raid.raiders


def test_an_account_that_comes_later_is_selected_only_without_a_group(mona: User, sign_in: SignIn) -> None:
    raid, client = write_groups(), sign_in(mona)
    html = client.get(f"/raids/{raid.channel.pk}/").content.decode()
    grouped = select(client, raid, html, raid.raiders)
    late = join_group(raid, minutes_ago=0.1)
    assert checked(show_again(client, raid, html)) == raid.raiders | {late}
    for _ in range(2):
        grouped = show_again(client, raid, grouped)
        assert f'value="{late}"' in grouped
        assert checked(grouped) == raid.raiders
    # Opened again, the page selects all that seem to take part.
    assert checked(client.get(f"/raids/{raid.channel.pk}/").content.decode()) == raid.raiders | {late}


def test_an_account_of_another_time_is_not_selected_with_a_group(mona: User, sign_in: SignIn) -> None:
    raid, client = write_groups(), sign_in(mona)
    early, minute = join_group(raid, minutes_ago=20), now_ms() // MINUTE_MS
    html = client.get(f"/raids/{raid.channel.pk}/?start={minute - 10}").content.decode()
    assert f'value="{early}"' not in html
    grouped = select(client, raid, html, raid.raiders)
    # Of the second time there are no messages.
    for start, end, selected in ((30, "", raid.raiders), (15, str(minute - 10), set()), (30, "", raid.raiders)):
        grouped = show_again(client, raid, grouped, start=str(minute - start), end=end)
        assert checked(grouped) == selected
    assert f'value="{early}"' in grouped
    assert checked(show_again(client, raid, html, start=str(minute - 30), end="")) == raid.raiders | {early}


def test_an_account_that_was_selected_in_another_time_is_not_any_more(mona: User, sign_in: SignIn) -> None:
    raid, client = write_groups(), sign_in(mona)
    html = client.get(f"/raids/{raid.channel.pk}/").content.decode()
    elsewhere = html.replace('name="chosen_elsewhere" value=""', 'name="chosen_elsewhere" value="7"')
    elsewhere = re.sub(r'name="listed" value="', 'name="listed" value="7 ', elsewhere)
    assert hidden_fields(elsewhere)["chosen_elsewhere"] == "7"
    assert hidden_fields(select(client, raid, elsewhere, raid.members))["chosen_elsewhere"] == ""


def test_a_group_with_accounts_that_the_page_does_not_list_has_no_button(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    raid = write_groups()
    monkeypatch.setattr(raid_page, "MAX_OTHER_ACCOUNTS", 2)
    html = sign_in(mona).get(f"/raids/{raid.channel.pk}/").content.decode()
    assert "by 3 accounts" in " ".join(html.split())
    assert groups_of(html) == [raid.raiders]
