"""The content security policy of every page: strict for our own, wider only for the admin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.csp import ADMIN, STRICT
from chatstore.models.users import User
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


def read_policy(header: str) -> dict[str, list[str]]:
    directives = (part.split() for part in header.split(";"))
    return {name: values for name, *values in directives}


def test_every_application_page_has_the_strict_policy(previewed: PreviewedPurge, ada: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    channel, purge = previewed.channel.pk, previewed.purge.pk
    paths = ["/", "/purges/", "/find/?q=x", f"/channels/{channel}/", f"/channels/{channel}/delete/"]
    paths += [
        f"/channels/{channel}/rows/?before=9",
        f"/channels/{channel}/new/",
        f"/purges/{purge}/",
        f"/purges/{purge}/live/",
    ]
    paths += ["/nowhere/", "/channels/1/", f"/channels/{channel}/?at=2999-01-01", f"/channels/{channel}/1/"]
    for path in [*paths, "/sign-in/"]:
        assert read_policy(client.get(path)["Content-Security-Policy"]) == STRICT, path
    assert read_policy(Client().get("/")["Content-Security-Policy"]) == STRICT


def test_the_strict_policy_begins_with_nothing_and_allows_nothing_inline() -> None:
    assert STRICT["default-src"] == ["'none'"]
    sources = [source for values in STRICT.values() for source in values]
    assert not [source for source in sources if "unsafe" in source or "*" in source or source.endswith(":")]


def test_the_admin_has_the_wider_policy(ada: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    for path in ("/admin/", "/admin/chatstore/channel/", "/admin/moderation/purge/", "/admin/nowhere/"):
        assert read_policy(client.get(path, follow=True)["Content-Security-Policy"]) == ADMIN, path


@pytest.mark.parametrize("directive", sorted(ADMIN))
def test_the_admin_widens_only_what_its_theme_needs(directive: str) -> None:
    wider = set(ADMIN[directive]) - set(STRICT.get(directive, []))
    needed = {
        "script-src": {"'unsafe-eval'"},
        "style-src": {"'unsafe-inline'"},
        "img-src": {"data:"},
        "font-src": {"'self'"},
    }
    assert wider == needed.get(directive, set())
