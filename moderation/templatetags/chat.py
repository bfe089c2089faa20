"""Template tags of every page: times and numbers as the viewer reads them, and messages as safe HTML."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from types import MappingProxyType

from django import template
from django.contrib.auth.models import AbstractUser
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chatstore.domain.controls import show_hidden
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel, ChatUser
from moderation.domain.state_labels import STATE_LABELS
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.access.staff_names import distinct_name_of
from moderation.operations.lookup.channels import ActiveChannel, Overview
from moderation.operations.purging.controls import HeldMessages
from moderation.operations.steps.totals import PurgeTotals
from moderation.presentation import formats, typed_dates
from moderation.presentation.excerpts import Known, unformatted
from moderation.presentation.html import fill, fill_each, fill_named
from moderation.presentation.page_urls import url_of
from moderation.presentation.people import name_unknown
from moderation.presentation.terms import TERMS
from moderation.presentation.texts import translate

register = template.Library()

_user_name_at_end = re.compile(r"\([^()\s]+\)$")

register.filter("staff_name_text", distinct_name_of)

CARD_CHARACTERS = 90
"""Characters of a message that a channel's card shows."""

_KINDS: dict[Channel.Kind, Promise] = {
    Channel.Kind.TEXT: gettext_lazy("text channel"),
    Channel.Kind.VOICE: gettext_lazy("voice channel"),
    Channel.Kind.NEWS: gettext_lazy("announcements"),
    Channel.Kind.THREAD: gettext_lazy("thread"),
    Channel.Kind.FORUM: gettext_lazy("forum"),
    Channel.Kind.DIRECT: gettext_lazy("direct message"),
}

_CHIP_CLASSES: dict[PurgeState, str] = {
    PurgeState.SCANNING: "busy",
    PurgeState.READY: "warning",
    PurgeState.QUEUED: "busy",
    PurgeState.RUNNING: "busy",
    PurgeState.WAITING: "busy",
    PurgeState.PAUSED: "warning",
    PurgeState.UNDOING: "busy",
    PurgeState.ERASING: "busy",
    PurgeState.CANCELLING: "busy",
    PurgeState.DONE: "done",
    PurgeState.DONE_WITH_FAILURES: "warning",
    PurgeState.UNDONE: "restored",
    PurgeState.PARTLY_UNDONE: "restored",
}
"""CSS class of each state, if it has a color. The label must do without it."""


@register.filter
def thousands(value: object) -> str:
    """1204 → "1,204"; None → "unknown"; anything else as text."""
    if value is None:
        return formats.unknown()
    return formats.format_number(value) if isinstance(value, int) else str(value)


@register.simple_tag
def at_least(count: int, is_exact: bool) -> str:
    """Format a count, or a lower bound of it."""
    number = formats.format_number(count)
    return number if is_exact else _("%(count)s or more") % {"count": number}


@register.filter
def counted(value: int | None, noun: str) -> str:
    """(1, "message") → "1 message"; (1204, "message") → "1,204 messages". The nouns are those of `formats`."""
    return formats.format_count(value, noun)


PLURAL_SAMPLES = (0, 1, 2, 3, 4, 5, 6, 10, 11, 20, 100, 1_000_000)
"""Numbers among which every language has one of each of its plural forms of whole numbers (Unicode CLDR)."""

_NO_USERS: Mapping[int, object] = MappingProxyType({})

_SELECTION_LABELS: dict[str, Callable[[int], str]] = {
    "arrived": lambda n: ngettext("%(count)s new message", "%(count)s new messages", n),
    "delete": lambda n: ngettext("Delete %(count)s message …", "Delete %(count)s messages …", n),
    "deleted": lambda n: ngettext("%(count)s message deleted", "%(count)s messages deleted", n),
    "established": lambda n: ngettext(
        "%(count)s of the selected accounts has been here for over a year.",
        "%(count)s of the selected accounts have been here for over a year.",
        n,
    ),
    "exclude": lambda n: ngettext("Exclude %(count)s message", "Exclude %(count)s messages", n),
    "included": lambda n: ngettext(
        "%(count)s message selected, included in the purge above",
        "%(count)s messages selected, all included in the purge above",
        n,
    ),
    "messages": lambda n: ngettext("%(count)s message", "%(count)s messages", n),
    "new": lambda n: ngettext("%(count)s new message ↓", "%(count)s new messages ↓", n),
    "preview": lambda n: ngettext("Preview %(count)s message", "Preview %(count)s messages", n),
    "restore": lambda n: ngettext("Restore %(count)s message", "Restore %(count)s messages", n),
    "restored": lambda n: ngettext("%(count)s message restored", "%(count)s messages restored", n),
    "selected": lambda n: ngettext("%(count)s message selected", "%(count)s messages selected", n),
}


@register.filter
def plural_forms(label: str) -> str:
    """Return a label that a script completes, for some numbers, as JSON: {"1": "# message selected", …}."""
    of_number = _SELECTION_LABELS[label]
    return json.dumps({number: of_number(number) % {"count": "#"} for number in PLURAL_SAMPLES}, ensure_ascii=False)


@register.filter
def duration(seconds: float | None) -> str:
    """Format seconds: "40 s", "3 min 20 s", "2 h 5 min"."""
    return formats.keep_together(formats.format_duration(seconds))


@register.filter
def rate(per_second: float) -> str:
    """Format messages per second without needless digits: "8,450", "3.2"."""
    return formats.format_rate(per_second)


@register.simple_tag
def state_chip(purge: Purge, label: str = "") -> SafeString:
    """Render a purge's state as a colored label. label: the state in words, where the state alone does not say it."""
    return fill(
        '<span class="chip {}">{}</span>',
        _CHIP_CLASSES.get(PurgeState(purge.state), ""),
        translate(label or STATE_LABELS[purge.state]),
    )


_CONTROL_LABELS = {
    "pause": gettext_lazy("Pause"),
    "resume": gettext_lazy("Resume"),
    "cancel": gettext_lazy("Cancel purge"),
}


@register.simple_tag
def control_label(control: str, total: PurgeTotals, held: HeldMessages | None = None) -> str:
    """Return the label of a purge's button: the action, and how many messages it concerns.

    held: what holds its held messages. A retry that is known to hold them again does not count them.
    """
    if control == "finish":
        label = ngettext(
            "Delete the remaining %(count)s message", "Delete the remaining %(count)s messages", total.left
        )
        return label % {"count": formats.format_number(total.left)}
    if control == "retry":
        return _retry_label(total.failed, 0 if held is not None and held.are_all_held else total.held)
    return str(_CONTROL_LABELS[control])


def _retry_label(failed: int, held: int) -> str:
    values = {"failed": formats.format_number(failed), "held": formats.format_number(held)}
    if not held:
        return ngettext("Retry %(failed)s failed message", "Retry %(failed)s failed messages", failed) % values
    if not failed:
        return ngettext("Retry %(held)s held message", "Retry %(held)s held messages", held) % values
    return _("Retry %(failed)s failed and %(held)s held messages") % values


@register.filter
def day(value: dt.date | dt.datetime) -> str:
    """Format a day with its weekday: "Monday, 11 March 2024"."""
    return formats.format_day(value)


@register.filter
def short_day(value: dt.date | dt.datetime) -> str:
    """Format a day: "11 Mar 2024"."""
    return formats.format_short_day(value)


@register.filter
def print_typed(text: str | None) -> str:
    """Return the text of a field; a day or time in ISO 8601 as pages print it."""
    return typed_dates.print_typed(text or "")


@register.filter
def together(text: str) -> str:
    """Return a quantity or a day in which no line breaks: "11 Mar 2024" with no-break spaces."""
    return formats.keep_together(text)


@register.filter
def lower_first(sentence: str) -> str:
    """Return a sentence as it follows a colon: "all are deleted right away."."""
    return sentence[:1].lower() + sentence[1:]


@register.filter
def minutes(value: dt.datetime | dt.time) -> str:
    """Format hours and minutes: "14:02"."""
    return formats.format_clock(value)


@register.filter
def datetime(value: dt.datetime) -> str:
    """Format day and minute, for attributes: "11 Mar 2024, 14:02"."""
    return formats.format_datetime(value)


@register.filter
def percent(part: int, whole: int) -> int:
    """Return the share in whole percent, where only 100 means all."""
    return formats.round_percent(part, whole)


@register.simple_tag
def span_of_days(first: dt.date, last: dt.date) -> str:
    """Format a span of days, both inclusive: "11–20 March 2024"."""
    return formats.format_days(first, last)


@register.simple_tag
def short_span_of_days(first: dt.date, last: dt.date) -> str:
    """Format a span of days, both inclusive, where there is little room: "11–20 Mar 2024"."""
    return formats.format_short_days(first, last)


@register.filter
def utc_midnight(day: dt.date) -> str:
    """Return the beginning of a day in UTC, for a URL: "2024-03-11T00:00Z"."""
    return formats.utc_midnight(day)


@register.filter
def kind_of(channel: Channel) -> str:
    """Return the label of a channel's kind: "text channel"."""
    return str(_KINDS[Channel.Kind(channel.kind)])


@register.simple_tag
def recent_channels(overview: Overview) -> SafeString:
    """Render the most recently active channels as cards, each with its newest message."""
    raid = draw_raid_mark()
    return fill_each(
        '<li>\n<a class="channel-card" href="{}#end">\n<span class="spread">\n<bdi class="name clip">{}</bdi>\n'
        '{}<span class="quiet small">{}</span>\n</span>\n<span class="quiet small clip">{}</span>\n'
        '<span class="small clip">\n{}:\n<bdi>{}</bdi>\n</span>\n</a>\n</li>',
        (
            (
                url_of("timeline", entry.channel.pk),
                visible(entry.channel),
                raid if entry.channel.pk in overview.raided else "",
                ago(entry.newest.posted_at),
                _describe_place(entry.channel, overview.posts.get(entry.channel.pk, 0)),
                _name_author(entry.newest, overview.users),
                Truncator(visible(excerpt(entry.newest.content, overview.users)) or _("(attachment)")).chars(
                    CARD_CHARACTERS
                ),
            )
            for entry in overview.recent
            if entry.newest is not None
        ),
    )


def _name_author(message: Message, users: Mapping[int, ChatUser]) -> SafeString:
    """Render the author of a message by their name, with the handle beside one that is ambiguous."""
    person = users.get(message.author_id)
    name = fill("<bdi>{}</bdi>", visible(message.author_name or person or name_unknown(message.author_id)))
    if person is None or message.webhook_id is not None or not person.is_ambiguous:
        return name
    return fill('{} <bdi class="quiet">{}</bdi>', name, show_hidden(person.distinct_handle))


def _describe_place(channel: Channel, posts: int) -> SafeString:
    """Return the guild of a channel, and how many messages the channel had in the last hour, if any."""
    guild = fill("<bdi>{}</bdi>", visible(channel.guild or _("Direct messages")))
    if not posts:
        return guild
    number = _("%(number)s in the last hour") % {"number": formats.format_number(posts)}
    return fill("{} · {}", guild, number)


@register.simple_tag
def other_channels(overview: Overview) -> SafeString:
    """Render the channels whose newest messages are not shown: folded by guild, each with the day of the last one."""
    by_guild: dict[tuple[str, int], list[ActiveChannel]] = {}
    for entry in overview.others:
        guild = entry.channel.guild
        by_guild.setdefault((str(guild), guild.pk) if guild else (_("Direct messages"), 0), []).append(entry)
    return fill_each(
        '<details class="guild-fold">\n<summary><bdi class="clip">{}</bdi>\n<span class="quiet small">{}</span>\n'
        '</summary>\n<ul class="channel-list">\n{}\n</ul>\n</details>',
        (
            (visible(name), formats.format_count(len(entries), "channel"), _other_channels(entries, overview))
            for (name, _guild_id), entries in sorted(by_guild.items(), key=itemgetter(0))
        ),
    )


def _other_channels(entries: Iterable[ActiveChannel], overview: Overview) -> SafeString:
    raid = draw_raid_mark()
    return fill_each(
        '<li class="clip">\n<a href="{}#end"><bdi>{}</bdi></a>\n{}<span class="quiet small">{}</span>\n</li>',
        (
            (
                url_of("timeline", entry.channel.pk),
                visible(entry.channel),
                raid if entry.channel.pk in overview.raided else "",
                _activity_of(entry, overview),
            )
            for entry in entries
        ),
    )


def draw_raid_mark() -> SafeString:
    """Render the mark of a channel with a possible raid."""
    return fill('<span class="tag raid-mark">{}</span>', _("raid"))


def _activity_of(entry: ActiveChannel, overview: Overview) -> str:
    if entry.until:
        return _("active until %(day)s") % {"day": formats.format_short_day(entry.until)}
    return "" if overview.error else _("empty")


@register.filter(is_safe=True)
def without_full_stop(text: str) -> str:
    """Return the text without the full stop at its end: a reason for a wait may be an error, which has its own."""
    return text.removesuffix(".")


@register.simple_tag
def term(name: str, label: str = "") -> SafeString:
    """Render a term with its explanation on hover and on focus. label: text to show in place of the term."""
    usual, explanation = TERMS[name]
    return format_html('<abbr class="term" tabindex="0" title="{}">{}</abbr>', explanation, label or usual)


@register.simple_tag
def glossary() -> list[tuple[str | Promise, str | Promise]]:
    """Return all terms with their explanations."""
    return list(TERMS.values())


@register.simple_tag
def ago(time: dt.datetime | None) -> SafeString:
    """Render a `<time>` relative to now, with the exact time on hover."""
    if time is None:
        return format_html("{}", _("never"))
    return time_tag(time, format_ago(time, timezone.now()))


@register.filter
def has_age(time: dt.datetime) -> bool:
    """Return whether `ago` renders an age; otherwise it renders the day, which the time beside it names too."""
    return formats.has_age(time, timezone.now())


@register.simple_tag
def clock(time: dt.datetime) -> SafeString:
    """Render a `<time>` of hours and minutes, with the exact time on hover."""
    return time_tag(time, formats.format_clock(time))


@register.simple_tag
def dated(time: dt.datetime | None) -> SafeString:
    """Render a `<time>` of day and minute in the viewer's time zone, with the exact time on hover."""
    if time is None:
        return format_html("{}", "—")
    return time_tag(time, formats.format_datetime(time))


@register.filter
def posted_at(message_id: int) -> SafeString:
    """Render a `<time>` of when a message was posted, from its ID: like `dated`."""
    return dated(time_of(message_id))


@register.simple_tag
def until_day(time: dt.datetime) -> SafeString:
    """Render a `<time>` that is some days ahead: the day, with the exact time on hover."""
    return time_tag(time, formats.format_short_day(time))


@register.simple_tag
def deadline(time: dt.datetime) -> SafeString:
    """Render a `<time>` that decides something: like `dated`, with UTC beside it."""
    return time_tag(time, formats.format_deadline(time))


@register.simple_tag
def span_of_times(first: dt.datetime, last: dt.datetime) -> SafeString:
    """Render when something began and ended: "11 Mar 2024, 14:02 to 15:10 UTC"; one time if both are in a minute.

    If the clock was changed between them, UTC stands beside both.
    """
    if formats.format_datetime(first) == formats.format_datetime(last):
        return deadline(last)
    end = time_tag(last, formats.format_deadline(last, after=first))
    is_same_offset = timezone.localtime(first).utcoffset() == timezone.localtime(last).utcoffset()
    start = dated(first) if is_same_offset else deadline(first)
    return fill_named(_("%(start)s to %(end)s"), start=start, end=end)


@register.simple_tag
def to_the_second(time: dt.datetime) -> SafeString:
    """Render a `<time>` with its seconds, for evidence."""
    return time_tag(time, formats.format_exact(time))


def time_tag(time: dt.datetime, text: str) -> SafeString:
    """Render a `<time>` with the exact time on hover."""
    return fill('<time datetime="{}" title="{}">{}</time>', time.isoformat(), formats.format_exact(time), text)


def exact(time: dt.datetime) -> str:
    """ "11 March 2024, 14:02:07 UTC"."""
    return formats.format_exact(time)


def format_ago(time: dt.datetime, now: dt.datetime) -> str:
    """ "3 minutes ago", "2 days ago", or the day for anything older than a month."""
    return formats.format_ago(time, now)


def excerpt(text: str, users: Mapping[int, object] = _NO_USERS) -> str:
    """Return the beginning of a message's text in one line, without markdown. users: those it may mention, by ID."""
    return unformatted(text, Known(users=users))


def draw_staff_name(name: str) -> SafeString:
    """Render the name of a staff account within a text, on one line where it fits. name: as it is shown.

    A user name at its end does not break at its hyphen either.
    """
    if user_name := _user_name_at_end.search(name):
        pattern = '<bdi class="staff-name">{}<span class="user-name">{}</span></bdi>'
        return fill(pattern, name[: user_name.start()], user_name.group())
    return fill('<bdi class="staff-name">{}</bdi>', name)


@register.filter
def staff_name(account: AbstractUser) -> SafeString:
    """Render the name of a staff account in the same way."""
    return draw_staff_name(distinct_name_of(account))


@register.filter
def visible(text: object) -> str:
    """Translate a text of lower layers, and spell out the invisible characters of any. The template escapes it."""
    return show_hidden(translate(text) if isinstance(text, str) else str(text))
