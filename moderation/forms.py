"""The shape of what comes from a browser; what it means is checked by the operations."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django import forms
from django.http import QueryDict

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, parse_snowflake
from moderation.domain.filters import Content
from moderation.domain.links import find_message_link
from moderation.operations.selection.parsing import Description, Terms

REASON_CHARACTERS = 1_000

_HAS = [
    (Content.LINK.value, "a link"),
    (Content.ATTACHMENT.value, "an attachment"),
    (Content.EMBED.value, "an embed"),
    (Content.MENTION.value, "a mention"),
]

_EXAMPLES = {
    "authors": "Victor, @wilma, 80351110224678912",
    "after": "20 minutes ago, or 2024-03-11T14:30",
    "before": "2024-03-12",
    "words": "free “cheap coins”",
    "pattern": r"(?i)c[0o]ins?\.example",
    "reply_to": "A message's link or id",
}


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


class TermsForm(forms.Form):
    """One group of conditions of the composer."""

    authors = forms.CharField(required=False, max_length=1000, label="Written by")
    after = forms.CharField(required=False, max_length=40, label="From")
    before = forms.CharField(required=False, max_length=40, label="Until")
    words = forms.CharField(required=False, max_length=500, label="Saying")
    pattern = forms.CharField(required=False, max_length=500, strip=False, label="Matching")
    has = forms.MultipleChoiceField(required=False, choices=_HAS, widget=forms.CheckboxSelectMultiple)
    bots = forms.BooleanField(required=False)
    pinned = forms.BooleanField(required=False)
    reply_to = forms.CharField(required=False, max_length=300, label="Replies to")

    def __init__(self, data: QueryDict, *, prefix: str | None = None) -> None:
        super().__init__(data, prefix=prefix, auto_id="%s")
        for name, example in _EXAMPLES.items():
            self.fields[name].widget.attrs |= {"placeholder": example, "autocomplete": "off"}

    def clean_reply_to(self) -> str:
        """A message's link means its id."""
        typed: str = self.cleaned_data["reply_to"]
        link = find_message_link(typed)
        return link[1] if link else typed

    def is_filled(self) -> bool:
        """Whether anything of the group is filled in."""
        return any(self[name].value() for name in self.fields)

    def has_more(self) -> bool:
        """Whether anything but author and dates is filled in."""
        return any(self[name].value() for name in self.fields.keys() - {"authors", "after", "before"})

    def read(self) -> Terms:
        """The group as typed; the form must be valid."""
        return Terms(**self.cleaned_data)


class PlaceForm(forms.Form):
    """Where the composer looks, and what is said once for all groups."""

    channels = forms.CharField(required=False, max_length=1000)
    guild = forms.CharField(required=False, max_length=24)
    with_pinned = forms.BooleanField(required=False)
    everything = forms.BooleanField(required=False)
    channel_name = forms.CharField(required=False, max_length=200)


class Composer:
    """The composer's fields: where, three groups of conditions, and the choice of a whole channel."""

    def __init__(self, data: QueryDict) -> None:
        self.place = PlaceForm(data, auto_id="%s")
        self.all = TermsForm(data)
        self.either = TermsForm(data, prefix="either")
        self.none = TermsForm(data, prefix="none")

    @property
    def is_empty(self) -> bool:
        """Whether no condition is filled in yet."""
        return not (self.all.is_filled() or self.either.is_filled() or self.none.is_filled())

    def read(self) -> Description:
        """What was typed. Raises `BadInput` with the first field that cannot be read."""
        for form in (self.place, self.all, self.either, self.none):
            for field, errors in form.errors.items():
                label = form.fields[field].label
                raise BadInput(f"{label}: {errors[0]}" if label else str(errors[0]))
        place = self.place.cleaned_data
        return Description(**place, all=self.all.read(), either=self.either.read(), none=self.none.read())


def read_presets(query: QueryDict) -> QueryDict:
    """What an address fills in beforehand: any field by its name, `author` and `channel` by an id."""
    filled = query.copy()
    for short, name in (("author", "authors"), ("channel", "channels")):
        if short in filled:
            filled.setlistdefault(name, filled.getlist(short))
    return filled


class ConfirmForm(forms.Form):
    """What confirming takes: why, and the digest of what was previewed."""

    reason = forms.CharField(max_length=REASON_CHARACTERS)
    digest = forms.RegexField(r"^[0-9a-f]{64}$")


def ticked_in(posted: QueryDict) -> list[str]:
    """The ids of ticked messages as they came, each a field or all in one."""
    # With a script they come as one field: a form may have a thousand fields at most.
    return [*posted.getlist("message_id"), *posted.get("message_ids", "").split()]


def read_ticked(posted: QueryDict) -> list[int]:
    """The ids of ticked messages. Raises `BadInput` when there is none or one is no id."""
    ids = ticked_in(posted)
    if not ids:
        raise BadInput("No message is ticked.")
    return sorted({parse_snowflake(text) for text in ids})


def read_digest(posted: QueryDict) -> bytes:
    """The digest of the preview that was shown. Raises `BadInput` when it is none."""
    text = posted.get("digest", "")
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise BadInput("The preview is not complete. Look at it again.")
    return bytes.fromhex(text)


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


class BucketConverter:
    """A bucket's number in an address; before 2015 they are negative."""

    regex = "-?[0-9]{1,6}"

    def to_python(self, value: str) -> int:
        """The number; which there are is the operation's to say."""
        return int(value)

    def to_url(self, value: int) -> str:
        """The number as it is written."""
        return str(value)
