"""A server of exactly the name that is typed comes before those whose name begins with it, and before all others."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models.users import User
from moderation.operations.lookup.jump import MAX_CHANNELS
from moderation.operations.selection.suggestions import MAX_SUGGESTED
from tests.moderation.channels import make_channel

SignIn = Callable[[User], Client]


@pytest.fixture
def word() -> str:
    """Create servers with a word in their names: by name alone, the one of exactly this name would come last."""
    word = f"go{secrets.token_hex(6)}"
    for number in range(max(MAX_CHANNELS, MAX_SUGGESTED)):
        make_channel(guild=f"Bin{word} {number}")
    for name in (f"{word} club", f"{word.upper()} arts", word):
        make_channel(guild=name)
    return word


def first_of(word: str) -> list[str]:
    return [word, f"{word.upper()} arts", f"{word} club"]


@pytest.mark.parametrize("path", ["/find/suggestions/", "/find/"])
def test_the_search_box_lists_servers_by_how_well_they_match(path: str, word: str, mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(path, {"q": word}).content.decode()
    names = re.findall(r'href="/guilds/\d+/".*?<bdi[^>]*>(.*?)</bdi>', html, re.DOTALL)
    assert names[:3] == first_of(word)


def test_the_composer_suggests_servers_by_how_well_they_match(word: str, mona: User, sign_in: SignIn) -> None:
    picks = sign_in(mona).get("/delete/suggestions/", {"kind": "guilds", "q": word}).json()["picks"]
    assert [pick["label"] for pick in picks[:3]] == first_of(word)
