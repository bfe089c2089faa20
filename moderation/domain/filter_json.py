"""Filters as JSON, as they are stored with purges. Older versions of it remain readable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moderation.domain.filters import (
    All,
    AnyOf,
    AnyWord,
    Author,
    Before,
    Content,
    Filter,
    FirstSeenWithin,
    FromBot,
    Has,
    JoinedWithin,
    Not,
    Pattern,
    Pinned,
    ReplyTo,
    Similar,
    Since,
    Words,
    YoungAccount,
)


def filter_as_json(where: Filter) -> dict[str, Any]:  # noqa: C901, PLR0911, PLR0912
    """Return a JSON object with one key. Ids are strings, because JavaScript numbers cannot represent them."""
    match where:
        case Author(ids):
            return {"author": [str(i) for i in ids]}
        case Since(message_id):
            return {"since": str(message_id)}
        case Before(message_id):
            return {"before": str(message_id)}
        case Words(text):
            return {"words": text}
        case AnyWord(text):
            return {"any_word": text}
        case Similar(text):
            return {"similar": text}
        case YoungAccount(days):
            return {"account_days": days}
        case JoinedWithin(minutes):
            return {"joined_minutes": minutes}
        case FirstSeenWithin(hours):
            return {"first_seen_hours": hours}
        case Pattern(expression):
            return {"pattern": expression}
        case Has(what):
            return {"has": str(what)}
        case FromBot():
            return {"bot": True}
        case Pinned():
            return {"pinned": True}
        case ReplyTo(message_id):
            return {"reply_to": str(message_id)}
        case Not(part):
            return {"not": filter_as_json(part)}
        case All(parts):
            return {"all": [filter_as_json(part) for part in parts]}
        case AnyOf(parts):
            return {"any": [filter_as_json(part) for part in parts]}


def filter_from_json(value: dict[str, Any]) -> Filter:
    """Restore a filter from the value that `filter_as_json` returned."""
    ((kind, inner),) = value.items()
    return _FROM_JSON[kind](inner)


_FROM_JSON: dict[str, Callable[[Any], Filter]] = {
    "author": lambda ids: Author(tuple(map(int, ids))),
    "since": lambda text: Since(int(text)),
    "before": lambda text: Before(int(text)),
    "words": Words,
    "any_word": AnyWord,
    "similar": Similar,
    "account_days": YoungAccount,
    "joined_minutes": JoinedWithin,
    "first_seen_hours": FirstSeenWithin,
    "pattern": Pattern,
    "has": lambda what: Has(Content(what)),
    "bot": lambda _: FromBot(),
    "pinned": lambda _: Pinned(),
    "reply_to": lambda text: ReplyTo(int(text)),
    "not": lambda part: Not(filter_from_json(part)),
    "all": lambda parts: All(tuple(map(filter_from_json, parts))),
    "any": lambda parts: AnyOf(tuple(map(filter_from_json, parts))),
}
