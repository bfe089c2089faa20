"""Texts that raids vary a little are recognized as alike; what people say to each other is not."""

from __future__ import annotations

import random
import time

import pytest

from moderation.domain.similar_texts import group_texts, reduce_text

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "text",
    [
        "FREE COINS at coins.example 7391",
        "free   coins, at c\u200boins.example!!!",
        "frée cóins at coins.example <@80351110224678912>",
        "𝐟𝐫𝐞𝐞 𝐜𝐨𝐢𝐧𝐬 at coins.example",
        "freeeee coinsss at coins.exxxample :fire:"[:40],
    ],
)
def test_case_digits_accents_fonts_and_repetitions_make_no_difference(text: str) -> None:
    assert group_texts(["free coins at coins.example", text]) == [("free coins at coins.example", text)]


def test_a_different_ending_makes_little_difference() -> None:
    texts = [f"free coins for everybody at https://coins.example {end}" for end in ("kxqwz", "hurry", "plmnb")]
    assert len(group_texts(texts)) == 1


def test_sentences_about_one_subject_are_not_alike() -> None:
    texts = ["who is up for the Drowned Stair tonight?", "the Drowned Stair was so hard yesterday evening"]
    assert len(group_texts(texts)) == 2


def test_short_texts_are_not_compared() -> None:
    assert group_texts(["gg", "gg", "GG!!", "🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉"]) == []


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
    spam = [
        f"free coins for everybody at https://coins.example {''.join(rng.choices('abcdef', k=5))}" for _ in range(50)
    ]
    mixed = [text for pair in zip(talk[200:250], spam, strict=True) for text in pair]
    assert set(group_texts([*talk[:200], *mixed])[0]) == set(spam)


def test_a_thousand_long_different_texts_take_seconds_at_most() -> None:
    texts = [" ".join(f"{chr(97 + (n * k) % 26)}{n * k:x}word" for k in range(1, 60)) for n in range(1_000)]
    began = time.process_time()
    group_texts(texts)
    assert time.process_time() - began < 20


def test_only_the_beginning_of_a_huge_text_is_read() -> None:
    assert len(reduce_text("ab" * 100_000)) == 120
