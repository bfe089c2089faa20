"""Texts are English strings that keep their template and parameters, also in Postgres."""

import copy
import datetime as dt
import json
import pickle

import pytest

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import (
    Days,
    Duration,
    Size,
    Text,
    as_json,
    as_stored,
    from_json,
    from_stored,
    gettext_lazy,
    ngettext_lazy,
    pgettext_lazy,
)

EVERYTHING = gettext_lazy(
    "%(data)s %(count)s %(share)s %(at)s %(day)s %(days)s %(clock)s %(size)s %(time)s %(nodes)s %(inner)s",
    data="100 %",
    count=1_204,
    share=2.5,
    at=dt.datetime(2026, 3, 29, 2, 30, tzinfo=dt.UTC),
    day=dt.date(2026, 3, 29),
    days=Days(dt.date(2026, 3, 11), dt.date(2026, 3, 20)),
    clock=dt.time(2, 30),
    size=Size(1_234_567),
    time=Duration(200),
    nodes=("a", "b"),
    inner=ngettext_lazy("%(count)s row", "%(count)s rows", 2),
)


def test_a_text_is_an_english_string() -> None:
    assert EVERYTHING == (
        "100 % 1,204 2.5 29 March, 02:30 UTC 29 March 11–20 March 2026 02:30 1.2 MB 3 min 20 s a, b 2 rows"
    )
    assert json.dumps(EVERYTHING) == json.dumps(str(EVERYTHING), ensure_ascii=True)


@pytest.mark.parametrize(("count", "text"), [(0, "0 rows"), (1, "1 row"), (1_204, "1,204 rows")])
def test_the_count_chooses_the_template(count: int, text: str) -> None:
    assert ngettext_lazy("%(count)s row", "%(count)s rows", count) == text


@pytest.mark.parametrize("text", [EVERYTHING, pgettext_lazy("state", "done"), gettext_lazy("100 %%")])
def test_a_stored_text_keeps_its_template(text: Text) -> None:
    for read in (from_stored(as_stored(text)), copy.deepcopy(text), pickle.loads(pickle.dumps(text))):  # noqa: S301
        assert isinstance(read, Text)
        assert read == text
        assert (read.template, read.plural, read.context) == (text.template, text.plural, text.context)
        assert dict(read.params) == dict(text.params)


@pytest.mark.parametrize("text", ["", "100 %", '{"template": broken', '{"template": "%(x)s", "params": {}}'])
def test_other_strings_are_stored_and_read_as_they_are(text: str) -> None:
    assert from_stored(as_stored(text)) == text
    assert from_json(as_json(text)) == text


def test_an_error_keeps_its_text() -> None:
    error = BadInput(gettext_lazy("There is no channel %(id)s.", id="7"))
    assert str(error) == error.text == "There is no channel 7."
    assert isinstance(error.text, Text)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (812, "812 B"), (1_234, "1.2 kB"), (1_234_567, "1.2 MB"), (999_999, "1.0 MB"), (5 * 10**12, "5.0 TB")],
)
def test_sizes_have_decimal_units(count: int, text: str) -> None:
    assert str(Size(count)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (40, "40 s"), (200, "3 min 20 s"), (7_500, "2 h 5 min"), (86_400, "1 day"), (100_800, "1 day 4 h")],
)
def test_durations_have_at_most_two_units(seconds: int, text: str) -> None:
    assert str(Duration(seconds)) == text
