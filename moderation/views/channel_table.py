"""The table of all channels with their figures, and its exports as CSV and JSON."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from chatstore.domain.errors import BadInput
from chatstore.domain.health import ChannelState
from chatstore.operations.health.channel_list import (
    MAX_NAMED,
    ChannelQuery,
    guild_names,
    guilds_named,
    iterate_channels,
    list_channels,
)
from chatstore.operations.rights import READ_HEALTH
from moderation.presentation.channel_states import LABELS
from moderation.views.channel_exports import as_csv, as_json
from moderation.views.exports import attach

DEFAULT_SORT = "-state"

HEADINGS: dict[str, str | Promise] = {
    "channel": gettext_lazy("Channel"),
    "state": gettext_lazy("State"),
    "tombstones": gettext_lazy("Tombstones, worst bucket"),
    "bytes": gettext_lazy("Largest partition"),
    "page": gettext_lazy("Newest page"),
    "empty": gettext_lazy("Empty buckets"),
    "uncovered": gettext_lazy("Deletes not repaired"),
    "purged": gettext_lazy("Last purge"),
}

TEXT_COLUMNS = frozenset({"channel", "state", "purged"})
"""Columns that are aligned as text."""

NAME_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Heading:
    """Heading of a column, a link that sorts by it. direction: "ascending", "descending" or "" for `aria-sort`."""

    label: str | Promise
    sort: str
    direction: str
    is_number: bool


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def channel_table(request: HttpRequest) -> HttpResponse:
    """List all channels with their figures, the worst first; `sort`, `server`, `state` and `q` choose others."""
    query = _parse_query(request)
    after = request.GET.get("after", "")
    context = {
        "nav": "channels",
        "page": list_channels(request.user, query, after=after),
        "is_first": not after,
        "headings": [_describe_heading(name, query) for name in HEADINGS],
        "states": [(state.name.lower(), label) for state, label in LABELS.items()],
        "guilds": [_("Direct messages"), *guild_names(request.user, READ_HEALTH)],
        "filters": {name: request.GET[name] for name in ("server", "state", "q") if request.GET.get(name)},
        "no_server": _describe_no_server(request, query),
        "sort": request.GET.get("sort") or DEFAULT_SORT,
        "max_named": MAX_NAMED,
        "now": timezone.now(),
        "may_open_purges": request.user.has_perm("moderation.view_purge"),
    }
    return render(request, "moderation/health/channels.html", context)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def channels_csv(request: HttpRequest) -> StreamingHttpResponse:
    """Export the channels of the same query as CSV; an unknown figure is an empty cell."""
    channels = iterate_channels(request.user, _parse_export(request))
    return attach(as_csv(channels), "text/csv; charset=utf-8", "channels.csv")


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def channels_json(request: HttpRequest) -> StreamingHttpResponse:
    """Export the channels of the same query as a JSON array; an unknown figure is null, an ID a string."""
    channels = iterate_channels(request.user, _parse_export(request))
    return attach(as_json(channels), "application/json", "channels.json")


def _parse_query(request: HttpRequest) -> ChannelQuery:
    """Return the query of a URL. Raises `BadInput`."""
    query = request.GET
    server, name = _read_name(query, "server"), _read_name(query, "q").removeprefix("#")
    is_direct = server.casefold() == _("Direct messages").casefold()
    sort = query.get("sort") or DEFAULT_SORT
    return ChannelQuery(
        column=sort.removeprefix("-"),
        is_descending=sort.startswith("-"),
        guilds=guilds_named(request.user, server, READ_HEALTH) if server and not is_direct else None,
        is_direct=is_direct,
        state=_parse_state(query.get("state", "")),
        name=name,
    )


def _parse_export(request: HttpRequest) -> ChannelQuery:
    """Return the query of an export, which cannot say beside its rows why there are none. Raises `BadInput`."""
    query = _parse_query(request)
    if no_server := _describe_no_server(request, query):
        raise BadInput(no_server)
    return query


def _describe_no_server(request: HttpRequest, query: ChannelQuery) -> str:
    """Return why no channel can match if the query names a server that does not exist; "" otherwise."""
    if query.guilds is None or query.guilds:
        return ""
    name = request.GET.get("server", "").strip()
    return _("There is no server “%(name)s”. Enter its exact name or its ID.") % {"name": name}


def _read_name(query: QueryDict, parameter: str) -> str:
    text = query.get(parameter, "").strip()
    if "\x00" in text:
        raise BadInput(_("A name cannot contain a NUL character. Remove it."))
    if len(text) > NAME_CHARACTERS:
        raise BadInput(_("Enter at most %(count)s characters to search for.") % {"count": NAME_CHARACTERS})
    return text


def _parse_state(text: str) -> ChannelState | None:
    if not text:
        return None
    for state in ChannelState:
        if state.name.lower() == text:
            return state
    raise BadInput(_("Unknown state “%(state)s”. Choose one of the filters.") % {"state": text})


def _describe_heading(name: str, query: ChannelQuery) -> Heading:
    direction = ("descending" if query.is_descending else "ascending") if name == query.column else ""
    # Names from A to Z, figures from the worst; then the other way round.
    is_next_descending = name != "channel" if not direction else not query.is_descending
    sort = f"-{name}" if is_next_descending else name
    return Heading(HEADINGS[name], sort, direction, is_number=name not in TEXT_COLUMNS)
