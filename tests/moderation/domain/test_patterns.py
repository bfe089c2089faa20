"""Words match whole, in any case and script; an expression can neither hang nor match everything."""

import pytest

from chatstore.domain.errors import BadInput
from moderation.domain.patterns import MAX_PATTERN_CHARACTERS, compile_pattern, compile_words


def contains(text: str, words: str) -> bool:
    return all(expression.search(text) is not None for expression in compile_words(words))


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        ("nitro", "Free NITRO!", True),
        ("nitro", "**nitro** and _nitro_", True),
        ("nitro", "nitrogen", False),
        ("ass", "first class", False),
        ("nitro free", "free discord nitro", True),
        ("nitro free", "nitro", False),
        ('"free nitro"', "free  nitro here", True),
        ('"free nitro"', "free discord nitro", False),
        ("école", "ÉCOLE 42", True),
        ("cole", "ÉCOLE", False),
        ("買う", "これを買うよ", True),
        ("c++", "I like C++, really", True),
        ("ß", "groß", False),
        ("(a|b)", "say (a|b) now", True),
        ("(a|b)", "say a now", False),
    ],
)
def test_words_are_found_whole_in_any_case(words: str, text: str, found: bool) -> None:
    assert contains(text, words) is found


@pytest.mark.parametrize("words", ["", "  ", '""', "!?", "a" * (MAX_PATTERN_CHARACTERS + 1), "a\x00b", "\ud800"])
def test_a_text_without_a_word_is_refused(words: str) -> None:
    with pytest.raises(BadInput):
        compile_words(words)


@pytest.mark.parametrize("expression", ["(a", "a**", "(?P<a", "(a{1000}){1000}", r"(a)\1"])
def test_an_unusable_expression_is_refused_with_the_reason(expression: str) -> None:
    with pytest.raises(BadInput, match="is not valid"):
        compile_pattern(expression)


@pytest.mark.parametrize("expression", [".*", "a*", "^", "a|", ".", "(?:)"])
def test_an_expression_that_matches_everything_is_refused(expression: str) -> None:
    with pytest.raises(BadInput, match="matches every message"):
        compile_pattern(expression)


def test_a_catastrophic_expression_is_stopped() -> None:
    """A backtracking matcher would take 2⁴⁰⁰⁰ steps."""
    assert compile_pattern(r"^(a+)+$").search("a" * 4_000 + "b") is None
