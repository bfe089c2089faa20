"""Texts are nearly the same if only what spammers vary differs."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moderation.domain.similarity import MAX_TEXT_CHARACTERS, normalize_text


@pytest.mark.parametrize(
    "copy",
    [
        "FREE NITRO for all! join x.example",
        "free\nnitro\tfor all join x.example",
        "F.R.E.E. nitro — for all; join: x.example!!!",
        "freeeee nitroooo for all join x.example",
        "f\u200bree nit\u00adro for all\u2060 join x.example",
        "Ｆｒｅｅ 𝐧𝐢𝐭𝐫𝐨 for all join x.example",
        "Ⓕⓡⓔⓔ nítro for all join x.example",
        "f\u0337r\u0337e\u0337e\u0337 nitro for all join x.example",
        "free nitro 🔥🔥 for all <:pepe:123456> join <a:dance:99> x.example 🎉",
        "_free_ **nitro** ~~for~~ all || join || x.example",
    ],
)
def test_copies_of_a_text_are_the_same(copy: str) -> None:
    assert normalize_text(copy) == normalize_text("Free Nitro for all, join x.example")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("invite 12345 by <@80351110224678912>", "invite 9 by <@!7>"),
        ("STRASSE", "straße"),
        ("\u202eRtl", "rtl"),
        ("!!!!", "!"),
        ("🔥🔥🔥", "🔥"),
        ("カタカナ", "ｶﾀｶﾅ"),
    ],
)
def test_numbers_case_and_symbols_are_compared_by_their_kind(one: str, other: str) -> None:
    assert normalize_text(one) == normalize_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("free nitro", "free beer"),
        ("🔥", "🎉"),
        ("<:pepe:1>", "<:dance:1>"),
        ("", "!"),
        ("無料", "有料"),
    ],
)
def test_other_texts_differ(one: str, other: str) -> None:
    assert normalize_text(one) != normalize_text(other)


@given(st.text(max_size=300))
def test_only_an_empty_text_becomes_empty(text: str) -> None:
    assert bool(normalize_text(text)) == bool(text)


@given(st.text(max_size=100), st.sampled_from([" ", "\u200b", "\u0301", "!", "\n"]))
def test_separators_in_a_text_with_letters_do_not_matter(text: str, separator: str) -> None:
    with_letters = f"{text} letters"
    assert normalize_text(separator.join(with_letters)) == normalize_text(with_letters)


@pytest.mark.parametrize("unit", ["\u0300\u0316", "\ufdfa", "a", "<a:", "<:a", "🔥", "1\u0661", "\u1100", "\x00"])
def test_hostile_texts_take_no_time(unit: str) -> None:
    began = time.process_time()
    shown = normalize_text(unit * 100_000)
    assert time.process_time() - began < 0.5
    assert len(shown) <= 4 * MAX_TEXT_CHARACTERS
