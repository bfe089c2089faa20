"""Dates, times and numbers are formatted as Django formats them, in any language."""

import datetime as dt

import pytest
from django.utils import dateformat, translation
from django.utils.formats import number_format
from django.utils.functional import lazy
from hypothesis import given
from hypothesis import strategies as st

from moderation.presentation.date_patterns import DateFormat
from moderation.presentation.formats import format_number

LANGUAGES = ("en", "de", "ar", "hi", "pl", "pt-br", "ja")
PATTERNS = (
    "l, j F Y",
    "j M Y, H:i",
    r"\a\m j\. F Y \u\m H:i:s \U\h\r",
    "g:i a, D jS",
    "H:i:s.u e",
    "s:i:H",
    "Y年n月j日 H時i分",
    r"H\hi",
    "",
)


@given(st.datetimes(timezones=st.just(dt.UTC)), st.sampled_from(PATTERNS), st.sampled_from(LANGUAGES))
def test_times_with_a_date_are_formatted_as_django_does(time: dt.datetime, pattern: str, language: str) -> None:
    with translation.override(language):
        assert DateFormat(pattern)(time) == dateformat.format(time, pattern)


@given(st.dates(), st.sampled_from(("l, j F Y", "D j M", "Y")), st.sampled_from(LANGUAGES))
def test_dates_are_formatted_as_django_does(day: dt.date, pattern: str, language: str) -> None:
    with translation.override(language):
        assert DateFormat(pattern)(day) == dateformat.format(day, pattern)


@given(st.times(), st.sampled_from(("H:i", "g:i A", "H:i:s", "P")), st.sampled_from(LANGUAGES))
def test_times_are_formatted_as_django_does(time: dt.time, pattern: str, language: str) -> None:
    with translation.override(language):
        assert DateFormat(pattern)(time) == dateformat.time_format(time, pattern)


def test_a_date_has_no_time_of_day() -> None:
    with pytest.raises(TypeError):
        DateFormat("j M Y, H:i")(dt.date(2024, 3, 11))


@given(st.integers(), st.sampled_from(LANGUAGES))
def test_whole_numbers_are_grouped_as_django_does(number: int, language: str) -> None:
    with translation.override(language):
        assert format_number(number) == number_format(number, force_grouping=True)


@given(st.floats(0, 1e12), st.sampled_from(LANGUAGES), st.integers(0, 2))
def test_other_numbers_are_rounded_and_grouped(number: float, language: str, digits: int) -> None:
    rounded = f"{number:.{digits}f}"
    with translation.override(language):
        assert format_number(number, digits=digits) == number_format(rounded, decimal_pos=digits, force_grouping=True)


def test_a_lazy_pattern_is_that_of_the_active_language() -> None:
    patterns = {"en": "F j", "de": "j. F"}
    format_day = DateFormat(lazy(lambda: patterns[translation.get_language()], str)())
    shown = []
    for language in ("en", "de", "en"):
        with translation.override(language):
            shown.append(format_day(dt.date(2024, 5, 1)))
    assert shown == ["May 1", "1. Mai", "May 1"]
