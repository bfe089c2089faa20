"""Times as people say them, numbers in groups, messages as safe HTML."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chatstore.domain.buckets import days_in_words
from chatstore.domain.controls import show_controls, show_hidden
from chatstore.domain.snowflakes import time_of
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.steps.totals import PurgeSum
from moderation.presentation.markup import Piece, is_long, parse_markup, shorten

register = template.Library()

_STEPS = ((60, "second"), (60, "minute"), (24, "hour"), (30, "day"))
FOLDED_CHARACTERS = 500

_WRAPS = {
    "bold": "<strong>{}</strong>",
    "italic": "<em>{}</em>",
    "strike": "<s>{}</s>",
    "code": "<code>{}</code>",
    "block": "<pre><code>{}</code></pre>",
    "quote": "<blockquote>{}</blockquote>",
    "emoji": '<span class="emoji">{}</span>',
    "control": '<span class="control" title="a character without a shape, shown by its name">{}</span>',
}


_CHIPS = {
    PurgeState.DRAFT: ("", "draft"),
    PurgeState.SCANNING: ("busy", "counting"),
    PurgeState.READY: ("needs", "to be confirmed"),
    PurgeState.NOTHING_MATCHED: ("", "nothing matched"),
    PurgeState.EXPIRED: ("", "expired"),
    PurgeState.QUEUED: ("busy", "queued"),
    PurgeState.RUNNING: ("busy", "removing"),
    PurgeState.WAITING: ("needs", "waiting"),
    PurgeState.PAUSED: ("needs", "paused"),
    PurgeState.UNDOING: ("busy", "bringing back"),
    PurgeState.UNDONE: ("", "brought back"),
    PurgeState.PARTLY_UNDONE: ("", "partly brought back"),
    PurgeState.UNDO_EXPIRED: ("", "undo over"),
    PurgeState.ERASING: ("busy", "erasing"),
    PurgeState.ERASED: ("", "erased"),
    PurgeState.CANCELLING: ("busy", "stopping"),
    PurgeState.CANCELLED: ("", "stopped"),
    PurgeState.DONE: ("done", "done"),
    PurgeState.DONE_WITH_FAILURES: ("needs", "done, not all"),
}
"""The class and the word of each state; the word alone must be enough."""


@register.filter
def thousands(value: object) -> str:
    """1204 → "1,204"; None → "not known"."""
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else str(value)


@register.filter
def counted(value: int | None, noun: str) -> str:
    """(1, "message") → "1 message"; (1204, "message") → "1,204 messages"."""
    if value is None:
        return f"unknown number of {noun}s"
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


@register.filter
def duration(seconds: float | None) -> str:
    """Seconds as people say them: "40 s", "3 min 20 s", "2 h 5 min"."""
    if seconds is None:
        return "not known yet"
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@register.filter
def rate(per_second: float) -> str:
    """Messages a second, without digits nobody needs: "8,450", "3.2"."""
    return f"{per_second:.1f}" if per_second < 10 else f"{per_second:,.0f}"


@register.filter
def emoji_name(kept: str) -> str:
    """A reaction's emoji: itself, or `:name:` of a guild's own ("name:id")."""
    name, _, number = kept.partition(":")
    return show_hidden(f":{name}:" if number.isdigit() and name else kept)


@register.simple_tag
def state_chip(purge: Purge) -> SafeString:
    """A purge's state as a coloured word."""
    return format_html('<span class="chip {}">{}</span>', *_CHIPS[PurgeState(purge.state)])


_ACT_WORDS = {
    "pause": "Pause",
    "resume": "Go on",
    "cancel": "Stop removing",
    "finish": "Remove the {left:,} that {left_are} left",
    "retry": "Try {again} again",
}


@register.simple_tag
def say_act(act: str, total: PurgeSum) -> str:
    """What a button that steers a purge says: what happens, and to how many."""
    return _ACT_WORDS[act].format(
        left=total.left,
        left_are="is" if total.left == 1 else "are",
        again=" and ".join(
            f"the {count:,} {word} {'one' if count == 1 else 'ones'}"
            for count, word in ((total.failed, "failed"), (total.held, "held"))
            if count
        ),
    )


@register.filter
def day(value: dt.date | dt.datetime) -> str:
    """A day as people say it: "Monday, 11 March 2024"."""
    return f"{value:%A}, {value.day} {value:%B %Y}"


@register.filter
def short_day(value: dt.date | dt.datetime) -> str:
    """A day in few letters: "11 Mar 2024"."""
    return f"{value.day} {value:%b %Y}"


@register.filter
def percent(part: int, whole: int) -> int:
    """How much of the whole, 0 to 100, rounded down so that 100 means all."""
    return int(part * 100 // whole) if whole else 0


@register.simple_tag
def span_of_days(first: dt.date, last: dt.date) -> str:
    """ "11–20 March 2024"."""
    return days_in_words(first, last)


@register.simple_tag
def ago(moment: dt.datetime | None) -> SafeString:
    """A `<time>` that says how long ago, with the exact moment on hover."""
    if moment is None:
        return format_html("{}", "never")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        exact(moment),
        say_ago(moment, timezone.now()),
    )


@register.simple_tag
def clock(moment: dt.datetime) -> SafeString:
    """A `<time>` of hours and minutes, with the exact moment on hover."""
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact(moment), f"{moment:%H:%M}")


@register.simple_tag
def dated(moment: dt.datetime | None) -> SafeString:
    """A `<time>` of day and minute, with the exact moment on hover."""
    if moment is None:
        return format_html("{}", "—")
    words = f"{short_day(moment)}, {moment:%H:%M}"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact(moment), words)


@register.filter
def id_time(snowflake: int) -> dt.datetime:
    """The moment that an id carries."""
    return time_of(snowflake)


def exact(moment: dt.datetime) -> str:
    """ "11 March 2024, 14:02:07 UTC"."""
    utc = moment.astimezone(dt.UTC)
    return f"{utc.day} {utc:%B %Y, %H:%M:%S} UTC"


def say_ago(moment: dt.datetime, now: dt.datetime) -> str:
    """ "3 minutes ago", "2 days ago", or the day once it is a month past."""
    amount = (now - moment).total_seconds()
    if amount < 5:
        return "just now"
    for size, unit in _STEPS:
        if amount < size:
            whole = int(amount)
            return f"{whole} {unit}{'' if whole == 1 else 's'} ago"
        amount /= size
    return short_day(moment)


@register.filter
def visible(text: object) -> str:
    """A name or a title with whatever nobody sees in it spelt out; the template escapes the rest."""
    return show_hidden(str(text))


@register.simple_tag(takes_context=True)
def message_text(context: template.Context, text: str) -> SafeString:
    """What somebody wrote, as HTML in which every piece is escaped; long ones are folded."""
    users: dict[int, Any] = context.get("users") or {}
    if not is_long(text):
        return format_html('<div class="text" dir="auto">{}</div>', _draw(parse_markup(text), users))
    beginning = shorten(text, characters=FOLDED_CHARACTERS, lines=8)
    return format_html(
        '<details class="long"><summary><span class="text" dir="auto">{}…</span> '
        '<span class="unfold">Show all {} characters</span></summary>'
        '<div class="text" dir="auto">{}</div></details>',
        _draw([Piece("text", show_controls(beginning))], users),
        f"{len(text):,}",
        _draw(parse_markup(text), users),
    )


def _draw(pieces: list[Piece], users: dict[int, Any]) -> SafeString:
    return format_html_join("", "{}", ((_draw_piece(piece, users),) for piece in pieces))


def _draw_piece(piece: Piece, users: dict[int, Any]) -> SafeString | str:
    if piece.kind == "link":
        return format_html('<a href="{}" rel="noreferrer noopener nofollow">{}</a>', piece.target, piece.text)
    if piece.kind == "user":
        known = users.get(int(piece.target))
        name = show_hidden(str(known)) if known else f"user {piece.target}"
        return format_html('<bdi class="mention">@{}</bdi>', name)
    if piece.kind == "channel":
        return format_html('<bdi class="mention">#{}</bdi>', piece.target)
    wrap = _WRAPS.get(piece.kind)
    return format_html(wrap, piece.text) if wrap else piece.text
