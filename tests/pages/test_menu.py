"""The menu and the search box offer each role the pages that it can open, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models.users import User
from moderation.views.menu import PAGES
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel
from tests.pages.visitors import visitor_from_elsewhere

SignIn = Callable[[User], Client]

GUILD = "guild"
"""A role for one guild; else it is for the whole installation."""

MODERATES = "/ /purges/ /reports/ /holds/"
OPERATES = "/ /purges/ /health/"

# Roles, the pages in the menu, those in the menu of the account, and those that only the search box has.
TABLE: dict[str, tuple[tuple[tuple[Role, str], ...], str, str, str]] = {
    "no role": ((), "/", "", ""),
    "moderator of a guild": (((Role.MODERATOR, GUILD),), MODERATES, "", "/delete/"),
    "moderator": (((Role.MODERATOR, ""),), MODERATES, "", "/delete/"),
    "moderator, direct messages too": (
        ((Role.MODERATOR, ""), (Role.DIRECT, "")),
        f"{MODERATES} /admin/",
        "",
        "/delete/",
    ),
    "lead of a guild": (((Role.LEAD, GUILD),), f"{MODERATES} /audit/", "", "/delete/"),
    "lead, direct messages too": (
        ((Role.LEAD, ""), (Role.DIRECT, "")),
        f"{MODERATES} /audit/ /admin/",
        "",
        "/delete/",
    ),
    "auditor": (((Role.AUDITOR, ""),), f"{MODERATES} /audit/", "/roles/", "/roles/limits/"),
    "operator": (((Role.OPERATOR, ""),), OPERATES, "", "/health/channels/ /maintenance/ /maintenance/runs/"),
    "administrator of a guild": (
        ((Role.ADMIN, GUILD),),
        f"{MODERATES} /audit/",
        "/roles/",
        "/delete/ /roles/limits/",
    ),
    "administrator": (
        ((Role.ADMIN, ""),),
        f"{MODERATES} /health/ /audit/ /admin/",
        "/roles/",
        "/delete/ /roles/limits/ /health/channels/ /maintenance/ /maintenance/runs/",
    ),
    "direct messages": (((Role.DIRECT, ""),), "/", "", ""),
}

OWN = {"/account/", "/preferences/"}
"""Pages of every account."""


@pytest.fixture(params=TABLE)
def row(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(row: str, sign_in: SignIn) -> Client:
    account, channel = make_user("someone", group=None), make_channel(guild="Harbour")
    for role, where in TABLE[row][0]:
        give(account, role, guild_id=channel.guild_id if where == GUILD else None)
    return sign_in(account)


def links_of(client: Client, beginning: str, end: str, *, path: str = "/preferences/") -> list[str]:
    """Return where the links of a part of the page lead to."""
    part = client.get(path).content.decode().split(beginning)[1].split(end)[0]
    return re.findall(r'href="([^"]+)"', part)


def test_the_menu_has_the_pages_of_the_role(row: str, client: Client) -> None:
    offered = links_of(client, '<nav class="nav"', "</nav>")
    assert offered == TABLE[row][1].split()
    assert [client.get(path).status_code for path in offered] == [200] * len(offered)


def test_the_menu_of_the_account_has_the_pages_of_the_role(row: str, client: Client) -> None:
    offered = links_of(client, '<div class="account-menu">', "</details>")
    assert set(offered) == OWN | {*TABLE[row][2].split()}
    assert [client.get(path).status_code for path in offered] == [200] * len(offered)


def test_the_search_box_suggests_the_pages_of_the_role(row: str, client: Client) -> None:
    menu, account, others = TABLE[row][1:]
    if row == "no role":
        assert 'role="search"' not in client.get("/").content.decode()
        return
    offered = set()
    for _name, title, _right in PAGES:
        html = client.get("/find/suggestions/", {"q": str(title)}).content.decode()
        offered |= set(re.findall(r'<a href="([^"]+)"><span>[^<]*</span><span class="quiet small">Page</span>', html))
    lists = {path for path in offered if path.startswith("/purges/?")}
    assert offered - lists == OWN | {*menu.split(), *account.split(), *others.split()}
    assert bool(lists) is ("/purges/" in offered)
    assert {path: client.get(path).status_code for path in offered} == dict.fromkeys(offered, 200)


def test_a_visitor_is_offered_nothing_but_home() -> None:
    """Pages that need no account have no menu; that of an error leads to the page on which one signs in."""
    client = visitor_from_elsewhere()
    error = "/invitation/?token=unknown"
    for path in ("/sign-in/", "/nowhere/", error):
        html = client.get(path).content.decode()
        assert '<nav class="nav"' not in html
        assert '<div class="account-menu">' not in html
    assert links_of(client, '<main class="standalone">', "</main>", path=error) == ["/"]


def test_the_menu_of_the_account_has_the_initials_of_the_name_beside_them(sign_in: SignIn) -> None:
    account = make_user("tess", group=None)
    account.first_name, account.last_name = "Mona", "Ray"
    account.save()
    summary = sign_in(account).get("/").content.decode().split('<details class="account">')[1].split("</summary>")[0]
    assert re.search(r'class="avatar s tone\d" aria-hidden="true">MR</span>', summary)
    assert "Mona" in summary
