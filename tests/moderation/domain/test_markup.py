"""Message text split into pieces: nothing is lost, and nothing becomes more than text."""

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.controls import show_controls
from moderation.presentation.markup import is_long, parse_markup, shorten

marks = st.lists(
    st.sampled_from(
        [
            "**",
            "*",
            "_",
            "~~",
            "`",
            "```",
            "> ",
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


def kinds(text: str) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in parse_markup(text)]


@given(st.text() | marks)
def test_no_control_character_passes_in_any_piece(text: str) -> None:
    assert not any(character in ACTING for piece in parse_markup(text) for character in piece.text)


@given(st.text() | marks)
def test_letters_are_neither_lost_nor_added(text: str) -> None:
    shown = "".join(piece.text for piece in parse_markup(text))
    wanted = [c for c in text if c.isalpha() and c not in ACTING]
    names = "".join(c for c in shown if c.isalpha())
    position = 0
    for character in wanted:
        found = names.find(character, position)
        # Only the language name of a code block and the letters of an emoji may be dropped.
        assert found >= 0 or "```" in text or "<" in text
        position = found + 1 if found >= 0 else position


@given(st.text() | marks)
def test_only_web_addresses_become_links(text: str) -> None:
    for piece in parse_markup(text):
        if piece.kind == "link":
            assert piece.target.startswith(("http://", "https://"))
            assert not set("\"'<>` \n") & set(piece.target)


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
    assert kinds("> said\nanswer") == [("quote", "said"), ("text", "answer")]
    assert kinds("~~no~~ <@12> <#3> <:blob:4>") == [
        ("strike", "no"),
        ("text", " "),
        ("user", "12"),
        ("text", " "),
        ("channel", "3"),
        ("text", " "),
        ("emoji", ":blob:"),
    ]


def test_text_that_only_looks_like_markup_is_kept() -> None:
    for text in ("2 * 3 * 4", "snake_case_name", "a ** b", "`open", "javascript:alert(1)", "<@x>"):
        assert kinds(text) == [("text", text)]


def test_the_full_stop_of_a_sentence_is_not_part_of_its_link() -> None:
    assert kinds("see https://e.example/a.") == [("text", "see "), ("link", "https://e.example/a"), ("text", ".")]


def test_direction_marks_are_shown_by_name() -> None:
    assert kinds("a\u202eb") == [("text", "a"), ("control", "RLO"), ("text", "b")]
    assert show_controls("x\u202ey\x00") == "x[RLO]y[NUL]"
    assert show_controls("two\nlines\tand ü") == "two\nlines\tand ü"


def test_a_message_of_a_hundred_thousand_marks_is_parsed_in_bounded_time() -> None:
    pieces = parse_markup("**a**" * 100_000)
    assert len(pieces) < 5_000


def test_long_texts_are_truncated() -> None:
    assert is_long("x" * 1_201)
    assert is_long("\n" * 25)
    assert not is_long("x" * 1_200)
    assert shorten("one two three", characters=8) == "one two"
    assert shorten("a\nb\nc", characters=100, lines=2) == "a\nb"
