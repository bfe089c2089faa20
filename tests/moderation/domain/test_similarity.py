"""Texts that raids vary a little are recognized as alike; what people say to each other is not."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moderation.domain.similarity import MAX_LETTERS, compare_with, group_texts, letters_of

COPIES = [
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
    "<@80351110224678912> free nitro for all <#7> join x.example 7391",
    "\u200b" * 1_000 + "free nitro for all join x.example",
]
SPAM = "free coins for everybody at https://coins.example"


@pytest.mark.parametrize("copy", COPIES)
def test_copies_of_a_text_are_the_same(copy: str) -> None:
    assert letters_of(copy) == letters_of("Free Nitro for all, join x.example")


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
    assert compare_with(one)(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("free nitro", "free beer"),
        ("good game", "good games"),
        ("🔥", "🎉"),
        ("<:pepe:1>", "<:dance:1>"),
        ("41", "42"),
        ("", "!"),
        ("無料", "有料"),
        ("who is up for the Drowned Stair tonight?", "the Drowned Stair was so hard yesterday evening"),
        (SPAM, "free"),
        (SPAM, f"{SPAM} and three others who read this in the evening, when nothing is on television"),
    ],
)
def test_other_texts_differ(one: str, other: str) -> None:
    assert not compare_with(one)(other)
    assert not compare_with(other)(one)


@pytest.mark.parametrize("end", ["kxqwz", "hurry", "plmnb <@7>", "🎉"])
def test_a_different_ending_makes_little_difference(end: str) -> None:
    assert compare_with(SPAM)(f"{SPAM} {end}")
    assert compare_with(f"{SPAM} {end}")(SPAM)


@given(st.lists(st.text(max_size=40), max_size=8), st.text(max_size=40))
def test_a_text_is_alike_those_with_which_it_makes_a_group(texts: list[str], text: str) -> None:
    is_alike = compare_with(text)
    assert is_alike(text)
    for other in texts:
        if len(group_texts([text, other])) == 1 and len(letters_of(text)) >= 10 <= len(letters_of(other)):
            assert is_alike(other)


@given(st.text(max_size=300))
def test_only_an_empty_text_becomes_empty(text: str) -> None:
    assert bool(letters_of(text)) == bool(text)


@given(st.text(max_size=100), st.sampled_from([" ", "\u200b", "\u0301", "!", "\n", "7"]))
def test_separators_in_a_text_with_letters_do_not_matter(text: str, separator: str) -> None:
    with_letters = f"{text} letters"
    assert letters_of(separator.join(with_letters)) == letters_of(with_letters)


@pytest.mark.parametrize("unit", ["\u0300\u0316", "\ufdfa", "a", "<a:", "<:a", "🔥", "1\u0661", "\u1100", "\x00"])
def test_hostile_texts_take_no_time(unit: str) -> None:
    began = time.process_time()
    letters = letters_of(unit * 100_000)
    assert time.process_time() - began < 0.5
    assert len(letters) <= MAX_LETTERS


# --- Groups ---------------------------------------------------------------------------


@pytest.mark.parametrize("copy", COPIES)
def test_copies_of_a_text_are_one_group(copy: str) -> None:
    assert group_texts(["free nitro for all join x.example", copy]) == [("free nitro for all join x.example", copy)]


def test_sentences_about_one_subject_are_two_groups() -> None:
    texts = ["who is up for the Drowned Stair tonight?", "the Drowned Stair was so hard yesterday evening"]
    assert len(group_texts(texts)) == 2


def test_short_texts_are_in_no_group() -> None:
    assert group_texts(["gg", "gg", "GG!!", "good game", "🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉"]) == []


def test_scripts_without_spaces_are_compared() -> None:
    one, other = "無料コインはこちらからどうぞ今すぐ登録", "無料コインはこちらからどうぞ今すぐ登録☆彡"
    assert len(group_texts([one, other])) == 1


def test_the_most_frequent_text_and_group_come_first() -> None:
    rare, often = "join our crew at the harbour", "free coins at coins.example"
    groups = group_texts([rare, f"{often}!", often, often])
    assert groups == [(often, f"{often}!"), (rare,)]


def test_what_is_repeated_is_found_after_many_different_texts() -> None:
    rng = random.Random(7)
    talk = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=60)) for _ in range(300)]
    spam = [f"{SPAM} {''.join(rng.choices('abcdef', k=5))}" for _ in range(50)]
    mixed = [text for pair in zip(talk[200:250], spam, strict=True) for text in pair]
    assert set(group_texts([*talk[:200], *mixed])[0]) == set(spam)


def test_a_thousand_long_different_texts_take_seconds_at_most() -> None:
    texts = [" ".join(f"{chr(97 + (n * k) % 26)}{n * k:x}word" for k in range(1, 60)) for n in range(1_000)]
    began = time.process_time()
    group_texts(texts)
    assert time.process_time() - began < 20
