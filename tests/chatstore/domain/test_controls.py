"""Different names look different: control characters and invisible characters are spelt out."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.controls import make_inert, show_controls, show_hidden, show_on_one_line

INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u2060\u2063\u206f\u2800\u3164\ufe00\ufe0f\ufeff\uffa0"
)
TAGS = "".join(chr(0xE0000 + code) for code in (0x01, 0x20, 0x61, 0x7E, 0x7F))
ACTING = "\x00\x07\x1b\x7f\x85\u061c\u200e\u200f\u202a\u202e\u2028\u2029\u2066\u2069\ud83d"


def test_hidden_characters_in_a_name_are_spelt_out() -> None:
    assert show_hidden("mo\u00adna") == "mo[SHY]na"
    assert show_hidden("\u200b" * 40) == "[ZWSP×40]"
    assert show_hidden("\u200b\u200c\u200b") == "[ZWSP][ZWNJ][ZWSP]"
    assert show_hidden("".join(chr(0xE0000 + ord(letter)) for letter in "admin")) == "[TAG:admin]"
    assert show_hidden("mona\u3164\U000e0100") == "mona[U+3164][U+E0100]"
    assert show_hidden("a\u202eb\x00") == "a[RLO]b[NUL]"
    assert show_on_one_line("mo\u00adna\nis here") == "mo[SHY]na is here"


def test_a_name_of_nothing_but_blanks_is_spelt_out() -> None:
    assert show_hidden("  ") == "[SPACE×2]"
    assert show_hidden("\u00a0\u3000") == "[U+00A0][U+3000]"
    assert show_hidden("") == ""


@pytest.mark.parametrize("character", [*INVISIBLE, *TAGS, *ACTING])
def test_a_name_with_a_hidden_character_looks_unlike_the_one_without(character: str) -> None:
    for name in (f"mo{character}na", f"{character}mona", f"mona{character}", f"mo{character * 2}na", f"1{character}2"):
        shown = show_hidden(name)
        assert character not in shown
        assert shown not in {"mona", "12"}
        shown.encode()


def test_names_that_differ_are_shown_differently() -> None:
    pieces = ("a", "[", "]", "[SHY]", "[[", "×2", "TAG:a", "\u00ad", "\u200b", "\U000e0061", "\u202e", " ")
    names = {"".join(name) for length in (1, 2, 3) for name in itertools.product(pieces, repeat=length)}
    assert len({show_hidden(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    "name",
    [
        "mona",
        "Zoë Müller-Łukasz",
        "[SPAM] news [1]",
        "👨‍👩‍👧 family",
        "👩🏽‍💻",
        "🏳️‍🌈 ❤️ ☀️",
        "❤️‍🔥",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "3️⃣",
        "علی‌رضا",
        "क्‍ष",
        "日本語　の名前",
        "two\nlines\tand more",
    ],
)
def test_an_ordinary_name_is_not_changed(name: str) -> None:
    assert show_hidden(name) == name


def test_joiners_are_spelt_out_where_they_join_nothing() -> None:
    assert show_hidden("a\u200db") == "a[ZWJ]b"
    assert show_hidden("محمد\u200cرضا") == "محمد[ZWNJ]رضا"
    assert show_hidden("☀\ufe0f\ufe0f") == "☀\ufe0f[VS16]"
    assert show_hidden("🏴\U000e0061\U000e007f") == "🏴[TAG:a][U+E007F]"


@given(st.text(st.characters() | st.sampled_from(INVISIBLE + TAGS + ACTING)))
def test_no_control_character_is_left_in_a_name_a_text_or_a_url(text: str) -> None:
    for shown in (show_hidden(text), show_controls(text), make_inert(text)):
        shown.encode()
        left = set(shown) - set("\n\t")
        assert not [each for each in left if unicodedata.category(each) == "Cc"]
        assert not left & set("\u061c\u200e\u200f\u202a\u202e\u2066\u2069")


def test_a_url_leads_to_the_same_place() -> None:
    assert make_inert("https://e.example/ä?q=1%20") == "https://e.example/ä?q=1%20"
    assert make_inert("https://e.example/\u202egpj.exe") == "https://e.example/%E2%80%AEgpj.exe"
    assert make_inert("https://exam\u00adple.example/") == "https://exam%C2%ADple.example/"
