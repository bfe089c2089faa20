"""A saved filter keeps what was typed, and is read by later versions."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from moderation.domain.filters import Content
from moderation.forms import Composer, presets_of
from moderation.operations.selection.parsing import Description, Terms
from moderation.operations.selection.saved_filters import describe_as_json, description_from_json

texts = st.sampled_from(["", "Victor", "last 20 minutes", "“click here”", "7"])
terms = st.builds(
    Terms,
    **dict.fromkeys(("authors", "after", "before", "words", "any_words", "similar", "pattern", "reply_to"), texts),
    account_days=st.sampled_from(["", "7"]),
    joined_minutes=st.sampled_from(["", "10"]),
    first_seen_hours=st.sampled_from(["", "24"]),
    has=st.lists(st.sampled_from([kind.value for kind in Content]), unique=True).map(tuple),
    bots=st.booleans(),
    pinned=st.booleans(),
)
descriptions = st.builds(
    Description, channels=texts, guild=texts, except_channels=texts, all=terms, either=terms, none=terms
)


@given(descriptions)
def test_what_is_saved_fills_in_the_same(description: Description) -> None:
    kept = description_from_json(describe_as_json(description))
    assert kept == description
    typed = Composer(presets_of(kept)).read()
    assert replace(typed, all=as_tuples(typed.all), either=as_tuples(typed.either), none=as_tuples(typed.none)) == kept


def as_tuples(terms: Terms) -> Terms:
    return replace(terms, has=tuple(terms.has))


def test_a_whole_channel_is_not_saved_and_unknown_fields_are_left_out() -> None:
    assert describe_as_json(Description(everything=True, channel_name="general")) == {}
    stored = {"all": {"words": "a", "mood": "bad"}, "planet": "Mars"}
    assert description_from_json(stored) == Description(all=Terms(words="a"))
