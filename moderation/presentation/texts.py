"""Translation of the texts that lower layers make (see `chatstore.domain.texts`)."""

from __future__ import annotations

import datetime as dt

from django.utils.translation import gettext, ngettext, npgettext, pgettext

from chatstore.domain.texts import Days, Duration, Param, Size, Text
from moderation.presentation import formats


def translate(text: str) -> str:
    """Return a text in the viewer's language, with its numbers, dates and times in the viewer's formats.

    Other strings are data, or translated already: they are returned as they are.
    """
    if not isinstance(text, Text):
        return text
    return _template(text) % {name: show_param(value) for name, value in text.params.items()}


def messages_not_shown(error: str) -> str:
    """Return what stands in place of messages that the store could not return. error: its text."""
    return gettext("The messages can’t be shown right now: %(error)s") % {"error": translate(error)}


def _template(text: Text) -> str:
    if not text.plural:
        return pgettext(text.context, text.template) if text.context else gettext(text.template)
    count = text.params["count"]
    number = count if isinstance(count, int) else 0
    if text.context:
        return npgettext(text.context, text.template, text.plural, number)
    return ngettext(text.template, text.plural, number)


def show_param(value: Param) -> str:  # noqa: PLR0911
    """Return a parameter as it is shown within a text."""
    match value:
        case str():
            return translate(value)
        case int():
            return formats.format_number(value)
        case float():
            return formats.format_number(value, digits=1)
        case dt.datetime():
            return formats.format_deadline(value)
        case dt.date():
            return formats.format_day_of_month(value)
        case dt.time():
            return formats.format_clock(value)
        case Size(count):
            return formats.format_size(count)
        case Duration(seconds):
            return formats.format_long_duration(seconds)
        case Days(first, last):
            return formats.format_days(first, last)
        case _:
            return formats.join_list(map(show_param, value))
