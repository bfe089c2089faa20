"""Whom to invite, as it is typed: a line for each."""

import pytest

from chatstore.domain.errors import BadInput
from moderation.operations.access.invitations import MAX_PEOPLE, Person, parse_people

pytestmark = pytest.mark.unit


def test_a_line_has_a_user_name_and_a_full_name_if_there_is_one() -> None:
    typed = "  olga\r\n\nnora   Nora van  Quist \n"
    assert parse_people(typed) == [Person("nora", "Nora van  Quist"), Person("olga", "")]


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        (" \n\r\n", "Enter a user name."),
        ("nora\nolga\nnora Nora Quist", "The user name nora is listed twice. Remove one of them."),
        ("\n".join(f"person{number}" for number in range(MAX_PEOPLE + 1)), "Invite at most 50 people at once."),
    ],
)
def test_nobody_too_many_and_the_same_name_twice_are_refused(typed: str, error: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_people(typed)
    assert refused.value.text == error
