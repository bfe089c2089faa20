"""The table of all channels: sorted by any column, filtered, and paged by key over one index per column.

Unknown figures are below all known ones, so that each column has one index for both directions. A page reads the rows
after the last one of the page before, and never counts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import F, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.db.models.functions import Coalesce

from chatstore.domain.controls import show_hidden
from chatstore.domain.errors import BadInput
from chatstore.domain.health import ChannelState, KnownChannel, severity_of_channel
from chatstore.domain.runs import Severity
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, ChannelSummary, Finding
from chatstore.models.chat import ChannelQuerySet
from chatstore.models.maintenance import LONG_AGO, UNKNOWN_FIRST
from chatstore.operations.findings.channels import findings_of_channels, worst_finding
from chatstore.operations.health.channel_health import health_limits
from chatstore.operations.health.summaries import known_of
from chatstore.operations.rights import READ_HEALTH, guilds_for, require, restrict, scope_for

ROWS_PER_PAGE = 50
ROWS_PER_READ = 1_000
"""Rows of an export that are read at a time."""

MAX_NAMED = 1_000
"""Channels among which a search by name sorts; those that the index of names finds first."""

MAX_GUILDS = 100
"""Guilds with the same name, and guilds that are offered as filters."""

MAX_BIGINT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Column:
    """A column to sort by: the expression of its index, and how a cursor's value is read from a URL."""

    key: Combinable
    parse: Callable[[str], Any]


def _parse_number(text: str) -> int:
    number = int(text)
    if not UNKNOWN_FIRST <= number <= MAX_BIGINT:
        raise ValueError(text)
    return number


def _parse_time(text: str) -> dt.datetime:
    time = dt.datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(text)
    return time


def _parse_name(text: str) -> str:
    if "\x00" in text:
        raise ValueError(text)
    return text


COLUMNS: Mapping[str, Column] = {
    "channel": Column(F("channel__name"), _parse_name),
    "state": Column(F("state"), _parse_number),
    "tombstones": Column(Coalesce("tombstones", UNKNOWN_FIRST), _parse_number),
    "bytes": Column(Coalesce("bytes", UNKNOWN_FIRST), _parse_number),
    "page": Column(Coalesce("page_us", UNKNOWN_FIRST), _parse_number),
    "empty": Column(Coalesce("empty_share", float(UNKNOWN_FIRST)), float),
    "uncovered": Column(Coalesce("uncovered_deletes", UNKNOWN_FIRST), _parse_number),
    "purged": Column(Coalesce("last_purged_at", Value(LONG_AGO)), _parse_time),
}
"""Columns by the name in URLs."""


@dataclass(frozen=True, slots=True)
class ChannelQuery:
    """What to list, in which order. guilds: None for all. is_direct: only channels without one. name: its beginning."""

    column: str = "state"
    is_descending: bool = True
    guilds: Collection[int] | None = None
    is_direct: bool = False
    state: ChannelState | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class ListedChannel:
    """A channel with its figures. row: with its channel and guild.

    severity: the highest of its buckets and open findings. finding: the one that the state follows from; None: it
    follows from the figures.
    """

    row: ChannelSummary
    known: KnownChannel
    state: ChannelState
    severity: Severity | None
    finding: Finding | None = None

    @property
    def channel(self) -> Channel:
        """The channel."""
        return self.row.channel


@dataclass(frozen=True, slots=True)
class ChannelPage:
    """A page of channels. after: cursor of the next page, "" if this is the last one."""

    channels: Sequence[ListedChannel]
    after: str


def list_channels(
    user: AbstractUser | AnonymousUser, query: ChannelQuery, *, after: str = "", limit: int = ROWS_PER_PAGE
) -> ChannelPage:
    """Return a page of channels. after: cursor of the page before. Raises `Forbidden`, and `BadInput` for a cursor."""
    require(user, READ_HEALTH)
    return _read_page(_rows_of(user, query), query, _parse_cursor(query, after) if after else None, limit)


def iterate_channels(user: AbstractUser | AnonymousUser, query: ChannelQuery) -> Iterator[ListedChannel]:
    """Yield all channels of a query, a thousand at a time in memory. Raises `Forbidden` and `BadInput` at once."""
    require(user, READ_HEALTH)
    return _iterate(_rows_of(user, query), query)


def guilds_named(user: AbstractUser | AnonymousUser, text: str, right: str) -> list[int]:
    """Return the guilds with an ID, or with a name, in upper or lower case; of these where a user has a right."""
    guilds = guilds_for(user, right)
    found = list(guilds.filter(name__iexact=text).values_list("pk", flat=True)[:MAX_GUILDS])
    try:
        return [*found, parse_snowflake(text)]
    except BadInput:
        return found


def guild_names(user: AbstractUser | AnonymousUser, right: str) -> list[str]:
    """Return the first names of guilds in which a user has a right, to choose from.

    Without names that contain hidden characters: a field would contain them too, where they cannot be seen.
    """
    names = guilds_for(user, right).order_by("name").values_list("name", flat=True)[:MAX_GUILDS]
    return [name for name in dict.fromkeys(names) if show_hidden(name) == name]


def _iterate(rows: QuerySet[ChannelSummary], query: ChannelQuery) -> Iterator[ListedChannel]:
    after = ""
    while True:
        page = _read_page(rows, query, _parse_cursor(query, after) if after else None, ROWS_PER_READ)
        yield from page.channels
        after = page.after
        if not after:
            return


def _rows_of(user: AbstractUser | AnonymousUser, query: ChannelQuery) -> QuerySet[ChannelSummary]:
    if query.column not in COLUMNS:
        raise BadInput(_("The table has no column “%(name)s”.", name=query.column))
    rows = ChannelSummary.objects.annotate(key=COLUMNS[query.column].key)
    order = "-" if query.is_descending else ""
    rows = rows.order_by(f"{order}key", f"{order}channel_id")
    # Of the table whose index gives the order, so that rows of other guilds are passed without a look into the other.
    guild = "channel__guild" if query.column == "channel" else "guild"
    rows = restrict(rows, scope_for(user, READ_HEALTH), guild=f"{guild}_id", channel="channel_id")
    if query.guilds is not None:
        rows = rows.filter(**{f"{guild}_id__in": query.guilds})
    if query.is_direct:
        rows = rows.filter(**{guild: None})
    if query.state is not None:
        rows = rows.filter(state=query.state)
    if query.name:
        named = _channels_of(user, query).named_from(query.name).order_by().values_list("pk", flat=True)[:MAX_NAMED]
        rows = rows.filter(channel_id__in=list(named))
    return rows


def _channels_of(user: AbstractUser | AnonymousUser, query: ChannelQuery) -> ChannelQuerySet:
    """Return the channels among which a name is looked for."""
    channels = restrict(Channel.objects.all(), scope_for(user, READ_HEALTH), guild="guild_id", channel="pk")
    if query.guilds is not None:
        channels = channels.filter(guild_id__in=query.guilds)
    return channels.filter(guild=None) if query.is_direct else channels


def _read_page(
    rows: QuerySet[ChannelSummary], query: ChannelQuery, after: tuple[Any, int] | None, limit: int
) -> ChannelPage:
    if after is not None:
        rows = rows.filter(_is_after(query, after))
    found = list(rows[: limit + 1])
    shown = found[:limit]
    # Of the page alone: joined, Postgres may read the table of channels as a whole to find those of a guild.
    listed = Channel.objects.select_related("guild").in_bulk([row.channel_id for row in shown])
    findings = findings_of_channels([row.channel_id for row in shown])
    channels = []
    for row in shown:
        row.channel = listed[row.channel_id]
        channels.append(_describe(row, findings.get(row.channel_id, ())))
    return ChannelPage(channels, _cursor_of(shown[-1]) if len(found) > limit else "")


def _describe(row: ChannelSummary, findings: Collection[Finding]) -> ListedChannel:
    """Return a row with its state as stored, by which rows are sorted and filtered."""
    known, state = known_of(row), ChannelState(row.state)
    severities = [severity_of_channel(known, health_limits()), *(Severity(one.severity) for one in findings)]
    severity = max((one for one in severities if one is not None), default=None)
    return ListedChannel(row, known, state, severity, worst_finding(findings) if state > row.figure_state else None)


def _is_after(query: ChannelQuery, after: tuple[Any, int]) -> Q:
    place = Tuple(COLUMNS[query.column].key, F("channel_id"))
    is_after = Q(TupleLessThan(place, after) if query.is_descending else TupleGreaterThan(place, after))
    if query.column == "channel":
        # Of the two tables that the place is in, the name's index can only use its own part.
        is_after &= Q(channel__name__lte=after[0]) if query.is_descending else Q(channel__name__gte=after[0])
    return is_after


def _cursor_of(row: ChannelSummary) -> str:
    key = getattr(row, "key")  # noqa: B009 - an annotation, of which the model knows nothing
    return f"{row.pk}~{key.isoformat() if isinstance(key, dt.datetime) else key}"


def _parse_cursor(query: ChannelQuery, text: str) -> tuple[Any, int]:
    channel_id, _separator, key = text.partition("~")
    try:
        return COLUMNS[query.column].parse(key), parse_snowflake(channel_id)
    except (ValueError, BadInput):
        raise BadInput(_("The link to this page of the table is invalid. Start at its first page.")) from None
