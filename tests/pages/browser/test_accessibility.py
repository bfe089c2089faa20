"""Every page that a role may open has no violation that axe-core finds, in light and dark.

`make check-pages` checks all pages with more on them, at the width of a phone.
"""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import Page

from chatstore.models.users import User
from moderation.management.demo_accounts import CAST
from tests.pages.access_table import CASES
from tests.pages.accessibility import COLOR_RULES, violations_of
from tests.pages.conftest import make_previewed_purge
from tests.pages.serving import Site, browse_as, create_account
from tests.pages.visitors import visitor_from_elsewhere

SCHEMES: dict[Literal["light", "dark"], tuple[str, ...]] = {"light": (), "dark": COLOR_RULES}

FEWEST_PAGES = 6
"""Pages of one's own account, which staff without a role have."""

FEWEST_PAGES_OF_ROLES = 15
"""An auditor has twenty."""


def list_pages(user: User) -> list[str]:
    """Return the paths of the table that are a whole page for a user, with objects that have been made for them."""
    client, names = visitor_from_elsewhere(), make_previewed_purge().names
    client.force_login(user)
    paths = []
    for _, method, url, _ in CASES:
        path = "/" + url.format(**names)
        if method == "GET" and "sign-out" not in path and "logout" not in path:
            response = client.get(path)
            start = b"" if response.streaming else response.content.lstrip()[:15].lower()
            if response.status_code == 200 and start == b"<!doctype html>":
                paths.append(path)
    return paths


def faults_of(page: Page, name: str) -> list[str]:
    """Return the violations in both color schemes."""
    faults = []
    for scheme, rules in SCHEMES.items():
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        faults += [f"{name} {scheme}: {violation}" for violation in violations_of(page, only=rules)]
    return faults


@pytest.mark.slow
@pytest.mark.parametrize("role", CAST)
def test_no_page_of_a_role_has_a_violation(role: str, site: Site) -> None:
    account = create_account(role)
    paths = list_pages(User.objects.get(username=account[0]))
    assert len(paths) >= (FEWEST_PAGES_OF_ROLES if CAST[role][0] else FEWEST_PAGES)
    faults = []
    with browse_as(account, site) as page:
        for path in paths:
            response = page.goto(site.url + path)
            assert response is not None
            assert (response.status, response.url) == (200, site.url + path)
            if not path.startswith("/admin/"):
                page.locator("body:not(:has(#sidebar)), #sidebar[data-loaded]").first.wait_for(state="attached")
            faults += faults_of(page, path)
    assert faults == []
