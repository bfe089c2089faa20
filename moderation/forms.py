"""The shape of what comes from a browser; what it means is checked by the operations."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.http import QueryDict

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, parse_snowflake

REASON_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class Position:
    """Where in a channel to look; at most one is set. at: a date as typed."""

    before: int | None = None
    after: int | None = None
    around: int | None = None
    at: str = ""


def read_position(query: QueryDict) -> Position:
    """The position that a timeline's address names. Raises `BadInput` for no ids or several ways."""
    before, after, around = (read_cursor(query, name) for name in ("before", "after", "around"))
    at = query.get("at", "").strip()
    if sum((before is not None, after is not None, around is not None, bool(at))) > 1:
        raise BadInput("An address can name one position: before, after, around or at.")
    return Position(before=before, after=after, around=around, at=at)


def read_cursor(query: QueryDict, name: str) -> int | None:
    """An id from the query string, or None. Raises `BadInput` for anything else."""
    text = query.get(name, "").strip()
    return parse_snowflake(text) if text else None


class ComposeForm(forms.Form):
    """Who and when: what a purge by description is made of."""

    authors = forms.CharField(required=False, max_length=1000)
    after = forms.CharField(required=False, max_length=40)
    before = forms.CharField(required=False, max_length=40)
    everything = forms.BooleanField(required=False)


class ConfirmForm(forms.Form):
    """What confirming takes: why, and the digest of what was previewed."""

    reason = forms.CharField(max_length=REASON_CHARACTERS)
    digest = forms.RegexField(r"^[0-9a-f]{64}$")


class SnowflakeConverter:
    """A 64-bit id in an address; anything else is no address of ours."""

    regex = "-?[0-9]{1,20}"

    def to_python(self, value: str) -> int:
        """Django turns the `ValueError` into "not found"."""
        number = int(value)
        if not MIN_ID <= number <= MAX_ID:
            raise ValueError(value)
        return number

    def to_url(self, value: int) -> str:
        """The id as it is written."""
        return str(value)
