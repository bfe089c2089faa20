"""Message text split into pieces: nothing is lost, and nothing becomes more than text."""

import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.controls import show_controls
from moderation.presentation.markup import Piece, host_of, is_long, parse_markup, shorten

marks = st.lists(
    st.sampled_from(
        [
            "**",
            "*",
            "_",
            "__",
            "~~",
            "||",
            "`",
            "``",
            "```",
            "> ",
            ">>> ",
            "# ",
            "-# ",
            "- ",
            "  1. ",
            "\\\\",
            "[a](https://b.example)",
            "<t:5>",
            "@here",
            "\n",
            "a",
            "bc ",
            "<@12>",
            "<#3>",
            "<:x:4>",
            "https://e.example/",
            "\u202e",
            "\x00",
        ]
    ),
    max_size=40,
).map("".join)
ACTING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\x00\x07\x1b"


def leaves(pieces: Iterable[Piece]) -> list[Piece]:
    return [leaf for piece in pieces for leaf in (leaves(piece.parts) if piece.parts else [piece])]


def kinds(text: str) -> list[tuple[str, object]]:
    return [_describe(piece) for piece in parse_markup(text)]


def _describe(piece: Piece) -> tuple[str, object]:
    if not piece.parts:
        return piece.kind, piece.text
    if all(part.kind == "text" for part in piece.parts):
        return piece.kind, "".join(part.text for part in piece.parts)
    return piece.kind, [_describe(part) for part in piece.parts]


@given(st.text() | marks)
def test_no_control_character_passes_in_any_piece(text: str) -> None:
    assert not any(character in ACTING for piece in leaves(parse_markup(text)) for character in piece.text)


@given(st.text() | marks)
def test_letters_are_neither_lost_nor_added(text: str) -> None:
    shown = "".join(piece.text for piece in leaves(parse_markup(text)))
    wanted = [c for c in text if c.isalpha() and c not in ACTING]
    names = "".join(c for c in shown if c.isalpha())
    position = 0
    for character in wanted:
        found = names.find(character, position)
        # Only the language of a code block, the URL under a label and the letters of an emoji may be dropped.
        assert found >= 0 or "```" in text or "<" in text or "](" in text
        position = found + 1 if found >= 0 else position


@given(st.text() | marks)
def test_only_web_addresses_become_links(text: str) -> None:
    for piece in leaves(parse_markup(text)):
        if piece.kind in ("link", "masked"):
            assert piece.target.startswith(("http://", "https://"))
            assert not set("\"'<>` \n") & set(piece.target)
            assert piece.kind == "link" or host_of(piece.target)


@given(st.text() | marks)
def test_frames_are_never_deep(text: str) -> None:
    def depth(pieces: Iterable[Piece]) -> int:
        return max((1 + depth(piece.parts) for piece in pieces), default=0)

    assert depth(parse_markup(text)) <= 10


def test_the_markup_of_chats_is_recognized() -> None:
    assert kinds("**bold** and *it* and `code`") == [
        ("bold", "bold"),
        ("text", " and "),
        ("italic", "it"),
        ("text", " and "),
        ("code", "code"),
    ]
    assert kinds("```py\nx = 1\n```") == [("block", "x = 1\n")]
    assert kinds("```\nx = 1```") == [("block", "x = 1")]
    assert kinds("> said\n> twice\nanswer") == [("quote", "said\ntwice"), ("text", "answer")]
    assert kinds(">>> all\nof it") == [("quote", "all\nof it")]
    assert kinds("__under__ ||secret|| ``a`b``") == [
        ("underline", "under"),
        ("text", " "),
        ("spoiler", "secret"),
        ("text", " "),
        ("code", "a`b"),
    ]
    assert kinds("# Title\n-# note\n- one\n  - two\n3. three") == [
        ("heading", "Title"),
        ("subtext", "note"),
        ("list", [("item", "one"), ("item", "two")]),
        ("numbered", [("item", "three")]),
    ]
    assert kinds("~~no~~ <@12> <#3> <:blob:4>") == [
        ("strike", "no"),
        ("text", " "),
        ("user", "12"),
        ("text", " "),
        ("channel", "3"),
        ("text", " "),
        ("emoji", ":blob:"),
    ]
    assert kinds("@everyone <@&7> <t:1700000000:R>") == [
        ("everyone", "@everyone"),
        ("text", " "),
        ("role", "7"),
        ("text", " "),
        ("time", ""),
    ]


def test_times_have_a_date_in_every_time_zone() -> None:
    for seconds in (253_402_300_799, -62_135_596_800, 10**30):
        assert kinds(f"<t:{seconds}>") == [("text", f"<t:{seconds}>")]


def test_frames_contain_others() -> None:
    assert kinds("***both***") == [("bold", [("italic", "both")])]
    assert kinds("**a ~~b~~**") == [("bold", [("text", "a "), ("strike", "b")])]
    assert kinds("||**x**||") == [("spoiler", [("bold", "x")])]
    assert kinds("> **x**") == [("quote", [("bold", "x")])]
    assert kinds("`**x**`") == [("code", "**x**")]


def test_a_backslash_keeps_a_mark() -> None:
    assert "".join(piece.text for piece in parse_markup(r"\*no\* \||")) == "*no* ||"
    assert {piece.kind for piece in parse_markup(r"\*no\* \||")} == {"text"}


@pytest.mark.parametrize(
    "text",
    [
        r"[x](https://evil.example\@discord.com/)",
        "[x](javascript:alert(1))",
        "[x](https://[bad/)",
        "[x](https:///path)",
        "[x](data:text/html,1)",
    ],
)
def test_a_link_whose_host_cannot_be_told_has_no_label(text: str) -> None:
    assert all(piece.kind != "masked" for piece in parse_markup(text))


def test_a_label_is_shown_with_the_host_that_its_link_opens() -> None:
    (piece,) = parse_markup("[discord.com](https://discord.com@evil.example/x)")
    assert (piece.kind, piece.text, host_of(piece.target)) == ("masked", "discord.com", "evil.example")


def test_text_that_only_looks_like_markup_is_kept() -> None:
    for text in ("2 * 3 * 4", "snake_case_name", "a ** b", "`open", "javascript:alert(1)", "<@x>", "#tag", "-1", "||a"):
        assert kinds(text) == [("text", text)]


def test_the_full_stop_of_a_sentence_is_not_part_of_its_link() -> None:
    assert kinds("see https://e.example/a.") == [("text", "see "), ("link", "https://e.example/a"), ("text", ".")]


def test_direction_marks_are_shown_by_name() -> None:
    assert kinds("a\u202eb") == [("text", "a"), ("control", "RLO"), ("text", "b")]
    assert show_controls("x\u202ey\x00") == "x[RLO]y[NUL]"
    assert show_controls("two\nlines\tand ü") == "two\nlines\tand ü"


REPEATED = (
    "**a**",
    "*a ",
    "`",
    "``a",
    "||",
    "_a",
    "__a~~",
    "[a",
    "[x](https://a",
    "<@",
    "> ",
    ">\n",
    "- a\n",
    "```a",
    "\\*",
    "*_",
    "**__~~||*_a",
    "https://",
    "@here",
    "<t:",
    "\u202e",
)


@pytest.mark.parametrize("part", REPEATED)
def test_a_message_of_a_hundred_thousand_marks_is_parsed_in_linear_time(part: str) -> None:
    text = part * (200_000 // len(part))
    began = time.process_time()
    pieces = leaves(parse_markup(text))
    # A quadratic expression would need minutes; this takes a tenth of a second.
    assert time.process_time() - began < 5
    assert len(pieces) < 10_000


def test_long_texts_are_truncated() -> None:
    assert is_long("x" * 1_201)
    assert is_long("\n" * 25)
    assert not is_long("x" * 1_200)
    assert shorten("one two three", characters=8) == "one two"
    assert shorten("a\nb\nc", characters=100, lines=2) == "a\nb"
