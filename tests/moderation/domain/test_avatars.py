"""Avatars of users and guilds that have no picture."""

import pytest

from moderation.presentation.avatars import TONES, initials_of, tone_of


@pytest.mark.parametrize(
    ("name", "initials"),
    [
        ("Tidewalkers", "T"),
        ("the tide walkers", "TT"),
        ("  #1 fans", "1F"),
        ("—", "?"),
        ("", "?"),
        ("żółw ßeta", "ŻS"),
        ("💥 boom", "B"),
    ],
)
def test_initials_are_the_first_letters_of_two_words(name: str, initials: str) -> None:
    assert initials_of(name) == initials


def test_ids_made_one_after_the_other_have_different_colors() -> None:
    tones = [tone_of(number << 22) for number in range(64)]
    assert set(tones) == set(range(TONES))
