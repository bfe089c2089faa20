"""Error pages keep the menus of the account, and look the same for what it may not see and what does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models.users import User
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel

SignIn = Callable[[User], Client]

NOWHERE = "/channels/1000000007/"


def test_a_page_that_does_not_exist_keeps_the_menus(mona: User, sign_in: SignIn) -> None:
    response = sign_in(mona).get("/nowhere/")
    page = response.content.decode()
    assert response.status_code == 404
    assert 'aria-label="Main"' in page
    assert 'href="/purges/"' in page
    assert "This page does not exist, or your account cannot open it." in page


def test_a_refusal_keeps_the_menus_that_the_account_has(tess: User, sign_in: SignIn) -> None:
    response = sign_in(tess).get("/purges/")
    page = response.content.decode()
    assert response.status_code == 403
    assert 'aria-label="Main"' in page
    assert 'href="/account/"' in page
    assert 'href="/purges/"' not in page
    assert 'id="side"' not in page


def test_visitors_get_no_menus() -> None:
    response = Client().get("/nowhere/")
    assert response.status_code == 404
    assert "<nav" not in response.content.decode()


def test_a_channel_that_is_not_visible_looks_like_one_that_does_not_exist(sign_in: SignIn) -> None:
    moderator = make_user("mona", group=None)
    give(moderator, Role.MODERATOR, guild_id=make_channel(guild="Own").guild_id)
    client = sign_in(moderator)
    hidden = f"/channels/{make_channel(guild='Other').pk}/"
    pages = []
    for path in (hidden, NOWHERE):
        response = client.get(path)
        assert response.status_code == 404
        page = response.content.decode().replace(path.split("/")[2], "ID")
        pages.append(re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page))
    assert pages[0] == pages[1]


@pytest.mark.parametrize("path", ["/nowhere/", NOWHERE])
def test_a_part_of_a_page_gets_a_part(path: str, mona: User, sign_in: SignIn) -> None:
    response = sign_in(mona).get(path, headers={"HX-Request": "true"})
    assert response.status_code == 404
    assert "<html" not in response.content.decode()
