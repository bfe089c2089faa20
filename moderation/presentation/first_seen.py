"""When an author was first seen, in words: as exactly as it is known."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone
from django.utils.translation import gettext as _

from chatstore.domain.milliseconds import time_at
from chatstore.domain.snowflakes import MIN_ID, ms_of
from moderation.domain.first_seen import FirstSeen
from moderation.presentation.formats import format_ago, format_axis_day, format_short_day

_ANY_TIME_MS = ms_of(MIN_ID)

_NEW_ACCOUNT = dt.timedelta(days=30)
"""How old an account may be for its age alone to tell since when it may have been seen."""


def format_first_seen(seen: FirstSeen | None, *, made_at: dt.datetime | None, now: dt.datetime) -> str:
    """Return "first seen 3 minutes ago", or of an author of whom only a period is known "not seen before 20 Nov".

    The author has posted by now, and not before their account was made (made_at; None: not known). Without an earliest
    time it is "may be new here", unless the account is new.
    """
    if seen is not None and seen.is_exact:
        return _("first seen %(ago)s") % {"ago": format_ago(time_at(seen.latest), now)}
    earliest = time_at(seen.earliest) if seen is not None and seen.earliest > _ANY_TIME_MS else None
    bounds = [earliest] if earliest is not None else []
    if made_at is not None and (bounds or now - made_at < _NEW_ACCOUNT):
        bounds.append(made_at)
    if not bounds:
        return _("may be new here")
    day, today = (timezone.localtime(time).date() for time in (max(bounds), now))
    if day == today:
        return _("first seen today")
    shown = format_axis_day(day) if day.year == today.year else format_short_day(day)
    return _("not seen before %(day)s") % {"day": shown}
