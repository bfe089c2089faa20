"""The admin's form of a guild, which also adds channels: one per line, with ID and name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models import Channel, Guild
from chatstore.models.names import LONGEST_NAME

MAX_CHANNELS = 500
"""As many as a guild has in Discord."""


class GuildForm(forms.ModelForm):  # type: ignore[type-arg]
    """A guild and its new channels. Either all of them are valid, or nothing is saved."""

    new_channels = forms.CharField(
        label=gettext_lazy("New channels"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 6, "spellcheck": "false"}),
        help_text=gettext_lazy("One text channel per line: its ID, a space and its name. Others are added one by one."),
    )

    class Meta:
        model = Guild
        fields: ClassVar[list[str]] = ["id", "name"]

    def clean_new_channels(self) -> list[Channel]:
        """Return the channels, without their guild. Raises `ValidationError` with an error for each invalid line."""
        lines = [line.strip() for line in self.cleaned_data["new_channels"].splitlines()]
        if sum(map(bool, lines)) > MAX_CHANNELS:
            raise ValidationError(_("Enter at most %(count)s channels at a time.") % {"count": MAX_CHANNELS})
        found: dict[int, tuple[int, Channel]] = {}
        errors: list[str] = []
        for number, line in enumerate(lines, start=1):
            try:
                channel = _parse_channel(line) if line else None
                if channel is not None and channel.pk in found:
                    raise ValidationError(_("It has the ID of line %(other)s.") % {"other": found[channel.pk][0]})
            except ValidationError as error:
                errors.append(_line_error(number, error.messages[0]))
            else:
                if channel is not None:
                    found[channel.pk] = number, channel
        errors += _existing_errors(found)
        if errors:
            raise ValidationError(errors)
        return [channel for _number, channel in found.values()]


def _parse_channel(line: str) -> Channel:
    text, _space, name = line.partition(" ")
    name = name.strip().removeprefix("#")
    try:
        pk = parse_snowflake(text)
    except BadInput:
        raise ValidationError(_("It does not begin with an ID.")) from None
    if not name:
        raise ValidationError(_("The name is missing."))
    if len(name) > LONGEST_NAME:
        raise ValidationError(_("The name has more than %(count)s characters.") % {"count": LONGEST_NAME})
    return Channel(pk=pk, name=name)


def _existing_errors(found: dict[int, tuple[int, Channel]]) -> Iterator[str]:
    """Yield an error for each line whose channel exists."""
    existing = set(Channel.objects.filter(pk__in=found).values_list("pk", flat=True))
    for pk, (number, _channel) in found.items():
        if pk in existing:
            yield _line_error(number, _("A channel with this ID exists."))


def _line_error(number: int, message: str) -> str:
    return _("Line %(number)s: %(message)s") % {"number": number, "message": message}
