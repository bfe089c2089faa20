"""Forms and query parameters: they check the shape of the input; operations check its meaning."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from hashlib import sha256
from uuid import UUID

from django import forms
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext, gettext_lazy

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, parse_snowflake
from chatstore.models.names import LONGEST_NAME
from moderation.domain.datetimes import MAX_CHARACTERS
from moderation.domain.filters import Content
from moderation.domain.links import find_message_link
from moderation.domain.similarity import MAX_TEXT_CHARACTERS
from moderation.operations.access.reasons import MAX_REASON_CHARACTERS
from moderation.operations.selection.parsing import Description, Terms

NAMES_CHARACTERS = 3_000
"""Enough for a hundred ids of twenty digits, each with a comma and a space, and for names of that length."""

_HAS = [
    (Content.LINK.value, gettext_lazy("a link")),
    (Content.ATTACHMENT.value, gettext_lazy("an attachment")),
    (Content.EMBED.value, gettext_lazy("an embed")),
    (Content.MENTION.value, gettext_lazy("a mention")),
]

_EXAMPLES = {
    "authors": gettext_lazy("such as Victor, @wilma"),
    # Translators: keep the English words; only they are understood.
    "after": gettext_lazy("such as yesterday 14:30"),
    "before": gettext_lazy("such as 20 minutes ago"),
    "words": gettext_lazy("such as free “cheap coins”"),
    "any_words": gettext_lazy("such as nitro “click here”"),
    "similar": gettext_lazy("Text, or a message link"),
    "account_days": gettext_lazy("such as 7"),
    "joined_minutes": gettext_lazy("such as 10"),
    "first_seen_hours": gettext_lazy("such as 24"),
    "pattern": gettext_lazy(r"such as (?i)c[0o]ins?\.example"),
    "reply_to": gettext_lazy("Message link or ID"),
}

PERIODS = (
    (gettext_lazy("Last 20 minutes"), "20 minutes ago", ""),
    (gettext_lazy("Last hour"), "1 hour ago", ""),
    (gettext_lazy("Last 24 hours"), "24 hours ago", ""),
    (gettext_lazy("Today"), "today", ""),
    (gettext_lazy("Yesterday"), "yesterday", "today"),
    (gettext_lazy("Last 7 days"), "7 days ago", ""),
    (gettext_lazy("Any time"), "", ""),
)
"""Periods that one click fills in: the label, and the words for "From" and "Until" as the parser understands them."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a channel; at most one field is set, or both ends of a range. at: a date as typed."""

    before: int | None = None
    after: int | None = None
    around: int | None = None
    at: str = ""


def read_position(query: QueryDict) -> Position:
    """Parse the position in a timeline's query string. Raises `BadInput` for bad IDs or several positions."""
    before, after, around = (read_cursor(query, name) for name in ("before", "after", "around"))
    at = query.get("at", "").strip()
    if sum((before is not None, after is not None, around is not None, bool(at))) > 1:
        raise BadInput(gettext("A URL can have one position: before, after, around or at."))
    return Position(before=before, after=after, around=around, at=at)


def read_cursor(query: QueryDict, name: str) -> int | None:
    """Return an ID from the query string, or None. Raises `BadInput` for anything else."""
    text = query.get(name, "").strip()
    return parse_snowflake(text) if text else None


class TermsForm(forms.Form):
    """One group of conditions in the composer."""

    authors = forms.CharField(required=False, max_length=NAMES_CHARACTERS, label=gettext_lazy("Written by"))
    after = forms.CharField(required=False, max_length=MAX_CHARACTERS, label=gettext_lazy("From"))
    before = forms.CharField(required=False, max_length=MAX_CHARACTERS, label=gettext_lazy("Until"))
    words = forms.CharField(required=False, max_length=500, label=gettext_lazy("Containing words"))
    any_words = forms.CharField(required=False, max_length=500, label=gettext_lazy("Containing any of the words"))
    similar = forms.CharField(
        required=False,
        max_length=MAX_TEXT_CHARACTERS,
        label=gettext_lazy("Nearly the same text as"),
        widget=forms.Textarea(attrs={"rows": 1}),
    )
    account_days = forms.CharField(required=False, max_length=9, label=gettext_lazy("Account younger than (days)"))
    joined_minutes = forms.CharField(required=False, max_length=9, label=gettext_lazy("Joined within (minutes)"))
    first_seen_hours = forms.CharField(required=False, max_length=9, label=gettext_lazy("First seen within (hours)"))
    pattern = forms.CharField(required=False, max_length=500, strip=False, label=gettext_lazy("Matching"))
    has = forms.MultipleChoiceField(required=False, choices=_HAS, widget=forms.CheckboxSelectMultiple)
    bots = forms.BooleanField(required=False)
    pinned = forms.BooleanField(required=False)
    reply_to = forms.CharField(required=False, max_length=300, label=gettext_lazy("Replies to"))

    def __init__(self, data: QueryDict, *, prefix: str | None = None) -> None:
        super().__init__(data, prefix=prefix, auto_id="%s")
        for name, example in _EXAMPLES.items():
            self.fields[name].widget.attrs |= {"placeholder": example, "autocomplete": "off"}

    def clean_reply_to(self) -> str:
        """Turn a message link into its ID."""
        typed: str = self.cleaned_data["reply_to"]
        link = find_message_link(typed)
        return link[1] if link else typed

    def is_filled(self) -> bool:
        """Return whether any field of the group is filled in."""
        return any(self[name].value() for name in self.fields)

    def has_more(self) -> bool:
        """Return whether anything but author, dates and words is filled in."""
        shown = {"authors", "after", "before", "words", "any_words"}
        return any(self[name].value() for name in self.fields.keys() - shown)

    def read(self) -> Terms:
        """Return the group as typed. The form must be valid."""
        return Terms(**self.cleaned_data)


class PlaceForm(forms.Form):
    """The places to search, and the options that apply to all groups."""

    channels = forms.CharField(required=False, max_length=NAMES_CHARACTERS)
    except_channels = forms.CharField(required=False, max_length=NAMES_CHARACTERS)
    guild = forms.CharField(required=False, max_length=LONGEST_NAME)
    with_pinned = forms.BooleanField(required=False)
    everything = forms.BooleanField(required=False)
    channel_name = forms.CharField(required=False, max_length=200)


class Composer:
    """The composer's fields: places, three groups of conditions, and the whole-channel option."""

    def __init__(self, data: QueryDict) -> None:
        self.place = PlaceForm(data, auto_id="%s")
        self.all = TermsForm(data)
        self.either = TermsForm(data, prefix="either")
        self.none = TermsForm(data, prefix="none")

    @property
    def is_empty(self) -> bool:
        """True if no condition is filled in."""
        return not (self.all.is_filled() or self.either.is_filled() or self.none.is_filled())

    @property
    def groups(self) -> dict[str, TermsForm]:
        """The groups of conditions, by the prefix of their fields."""
        return {"": self.all, "either-": self.either, "none-": self.none}

    def read(self) -> Description:
        """Return what was typed. Raises `BadInput` with the first invalid field."""
        _check(self.place, self.all, self.either, self.none)
        place = self.place.cleaned_data
        return Description(**place, all=self.all.read(), either=self.either.read(), none=self.none.read())

    def read_place(self) -> Description:
        """Return the places that were typed, without conditions. Raises `BadInput` with the first invalid field."""
        _check(self.place)
        return Description(**self.place.cleaned_data)

    def read_reach(self) -> Description:
        """Return the places and the times that were typed. Raises `BadInput` with the first invalid field."""
        everything = self.read()
        return replace(self.read_place(), all=Terms(after=everything.all.after, before=everything.all.before))


def _check(*groups: forms.Form) -> None:
    for form in groups:
        for field, errors in form.errors.items():
            label = form.fields[field].label
            if not label:
                raise BadInput(str(errors[0]))
            raise BadInput(gettext("%(field)s: %(error)s") % {"field": label, "error": errors[0]})


def read_presets(query: QueryDict) -> QueryDict:
    """Return the fields that a query string fills in: any field by its name, `author` and `channel` by an ID."""
    filled = query.copy()
    for short, name in (("author", "authors"), ("channel", "channels")):
        if short in filled:
            filled.setlistdefault(name, filled.getlist(short))
    return filled


def choose_candidate(posted: QueryDict) -> QueryDict:
    """Return the fields with a name replaced by the ID that was chosen for it: `choose` is "author:ID:name"."""
    kind, number, name = [*posted.get("choose", "").split(":", 2), "", ""][:3]
    filled = posted.copy()
    authors = ("authors", "either-authors", "none-authors")
    for field in ("channels", "except_channels") if kind == "channel" else authors:
        names = [typed.strip() for typed in posted.get(field, "").split(",")]
        if name in names:
            filled[field] = ", ".join(number if typed == name else typed for typed in names)
    return filled


def presets_of(description: Description) -> QueryDict:
    """Return the fields of the composer, filled in as described."""
    query = QueryDict(mutable=True)
    place = ("channels", "except_channels", "guild")
    query.update({name: getattr(description, name) for name in place})
    if description.with_pinned:
        query["with_pinned"] = "1"
    for prefix, terms in (("", description.all), ("either-", description.either), ("none-", description.none)):
        query.setlist(f"{prefix}has", list(terms.has))
        texts = {name: getattr(terms, name) for name in _EXAMPLES}
        flags = {name: "1" for name in ("bots", "pinned") if getattr(terms, name)}
        for name, value in {**texts, **flags}.items():
            query[f"{prefix}{name}"] = value
    return query


class ConfirmForm(forms.Form):
    """A confirmation: the reason, and the hash of the manifest that was previewed."""

    reason = forms.CharField(max_length=MAX_REASON_CHARACTERS)
    manifest_hash = forms.RegexField(r"^[0-9a-f]{64}$")


def identify_form(request: HttpRequest) -> UUID:
    """Return what is the same only for a posted form that is sent again, unchanged, from the same page.

    Each page that is rendered has another token against cross-site requests in its forms.
    """
    sent = json.dumps([request.path, sorted(request.POST.lists())])
    return UUID(bytes=sha256(sent.encode()).digest()[:16])


def selected_ids(posted: QueryDict) -> list[str]:
    """Return the IDs of the selected messages as sent: one field each, or all in one."""
    # The script sends them as one field: a form may have at most a thousand.
    return [*posted.getlist("message_id"), *posted.get("message_ids", "").split()]


def read_selected(posted: QueryDict) -> list[int]:
    """Return the IDs of the selected messages. Raises `BadInput` for none, or a bad ID."""
    ids = selected_ids(posted)
    if not ids:
        raise BadInput(gettext("No messages are selected. Select at least one."))
    return sorted({parse_snowflake(text) for text in ids})


def read_manifest_hash(posted: QueryDict) -> bytes:
    """Return the manifest hash of the preview that was shown. Raises `BadInput` if malformed."""
    text = posted.get("manifest_hash", "")
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise BadInput(gettext("The preview is incomplete. Review it again."))
    return bytes.fromhex(text)


class SnowflakeConverter:
    """Path converter for a signed 64-bit ID."""

    regex = "-?[0-9]{1,20}"

    def to_python(self, value: str) -> int:
        """Parse the ID. Django turns the `ValueError` into a 404."""
        number = int(value)
        if not MIN_ID <= number <= MAX_ID:
            raise ValueError(value)
        return number

    def to_url(self, value: int) -> str:
        """Return the ID in decimal."""
        return str(value)


class BucketConverter:
    """Path converter for a bucket number; negative before 2015."""

    regex = "-?[0-9]{1,6}"

    def to_python(self, value: str) -> int:
        """Parse the number. Operations check that the bucket exists."""
        return int(value)

    def to_url(self, value: int) -> str:
        """Return the number in decimal."""
        return str(value)
