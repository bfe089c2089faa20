"""Names are found by any part of at least three characters, the best matches first, by an index of trigrams."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.models import Channel, ChatUser
from chatstore.models.names import LONGEST_NAME, find_by_name
from tests.chatstore.channels import fresh_id
from tests.plans import explain, rows_read

OTHERS = 2_000


@pytest.fixture
def word() -> Iterator[str]:
    """A word that begins the names of a few users and is a part of others, among many users."""
    word, first = f"q{secrets.token_hex(4)}", fresh_id()
    names = [f"x{word}", f"{word}-2", word.upper(), *(f"other {secrets.token_hex(4)}" for _ in range(OTHERS))]
    users = [ChatUser(id=first + number, name=name) for number, name in enumerate(names)]
    users.append(ChatUser(id=first + len(names), name="someone", display_name=f"The {word} one"))
    ChatUser.objects.bulk_create(users)
    yield word
    ChatUser.objects.filter(id__gte=first, id__lt=first + len(users)).delete()


def test_the_same_name_comes_first_then_its_beginning_then_a_part_of_it(word: str) -> None:
    found = find_by_name(ChatUser.objects.all(), word, limit=10)
    assert [user.name for user in found] == [word.upper(), f"{word}-2", "someone", f"x{word}"]


def test_a_part_of_a_name_is_found_without_reading_all_names(word: str) -> None:
    statements = explain(lambda: find_by_name(ChatUser.objects.all(), word[2:], limit=10))
    assert 0 < rows_read(statements, ChatUser._meta.db_table) < OTHERS / 10


def test_two_characters_are_found_at_the_beginning_of_a_name_only(word: str) -> None:
    found = find_by_name(ChatUser.objects.filter(display_name=f"The {word} one"), "th", limit=10)
    assert len(found) == 1
    assert find_by_name(ChatUser.objects.filter(display_name=f"The {word} one"), "he", limit=10) == []


def test_postgres_is_not_asked_for_what_is_longer_than_any_name() -> None:
    with CaptureQueriesContext(connection) as queries:
        assert find_by_name(ChatUser.objects.all(), "x" * 70_000, limit=10) == []
    assert len(queries) == 0


def test_the_longest_name_is_found() -> None:
    name = secrets.token_hex(LONGEST_NAME // 2)
    channel = Channel.objects.create(id=fresh_id(), name=name)
    assert find_by_name(Channel.objects.all(), name, limit=10) == [channel]


@pytest.mark.parametrize("text", ["100%", "a_c", "\\", "'", "ΣΊΣΥΦΟΣ", "é"])
def test_special_characters_are_found_as_they_are(text: str) -> None:
    user = ChatUser.objects.create(id=fresh_id(), name=f"{text}{secrets.token_hex(4)}")
    try:
        assert find_by_name(ChatUser.objects.all(), user.name, limit=10) == [user]
        assert user in find_by_name(ChatUser.objects.filter(pk=user.pk), text, limit=10)
    finally:
        user.delete()


def test_names_that_several_users_are_shown_by_are_told_apart(word: str) -> None:
    first, name = fresh_id(), f"Victor {word}"
    twin = ("twin", f"Twin {word}")
    rows = [("victor", name), (name, ""), twin, twin, ("alone", f"Alone {word}")]
    users = [ChatUser(id=first + n, name=handle, display_name=shown) for n, (handle, shown) in enumerate(rows)]
    ChatUser.objects.bulk_create(users)
    found: dict[int, ChatUser] = {}
    wanted = [user.pk for user in users]
    try:
        statements = explain(lambda: found.update(ChatUser.objects.with_namesakes().in_bulk(wanted)))
    finally:
        ChatUser.objects.filter(id__in=wanted).delete()
    assert [found[pk].distinct_name for pk in wanted] == [
        f"{name} (@victor)",
        f"{name} (@{name})",
        f"{twin[1]} (...{str(first + 2)[-4:]})",
        f"{twin[1]} (...{str(first + 3)[-4:]})",
        f"Alone {word}",
    ]
    assert rows_read(statements, ChatUser._meta.db_table) < OTHERS / 10
    assert not any(statement.scanned for statement in statements)


@pytest.mark.parametrize(
    "name",
    [
        "Victor (@victor.deals)",
        "Victor (1234)",
        "Victor (…1234)",
        "Victor (...1234)",
        "Victor ",
        "Vic  tor",
        "Victor\u00a0",
    ],
)
def test_a_name_that_could_be_taken_for_another_is_followed_by_the_handle(name: str) -> None:
    assert ChatUser(pk=5, name="imposter", display_name=name).distinct_name == f"{name} (@imposter)"
