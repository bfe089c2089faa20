"""The audit log: the list with its filters, one entry, and the exports as CSV and JSON."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.operations.health.channel_list import guild_names, guilds_named
from moderation.domain.packing import unpack_ids
from moderation.models import AuditEntry
from moderation.operations.access.audit_chain import unlinked_tail
from moderation.operations.lookup.audit_log import (
    VIEW_AUDIT,
    AuditQuery,
    ListedEntry,
    account_named,
    account_names,
    entry_for,
    export_entries,
    list_entries,
)
from moderation.presentation.audit import AUDIT_ACTIONS, all_facts, label_of
from moderation.views.audit_exports import as_csv, as_json
from moderation.views.exports import attach
from moderation.views.session import actor_of

FILTERS = ("person", "action", "server", "channel", "user", "purge", "message", "since", "until")

MAX_SHOWN_IDS = 200
"""Ids of messages that the page of an entry shows."""

_YEARS = range(2011, 2045)
"""Years of which entries can be, by their ids."""


@require_safe
@permission_required(VIEW_AUDIT, raise_exception=True)
def audit(request: HttpRequest) -> HttpResponse:
    """List entries, newest first; the parameters in `FILTERS` choose some."""
    before = request.GET.get("before", "")
    page = list_entries(request.user, _parse_query(request.GET), before=parse_snowflake(before) if before else None)
    now = timezone.localtime()
    context = {
        "nav": "audit",
        "page": page,
        "is_first": not before,
        "filters": {name: request.GET[name] for name in FILTERS if request.GET.get(name)},
        "actions": sorted(((action, str(label)) for action, label in AUDIT_ACTIONS.items()), key=lambda one: one[1]),
        "people": account_names(request.user, VIEW_AUDIT),
        "guilds": guild_names(request.user, VIEW_AUDIT),
        "month": now.date().replace(day=1).isoformat(),
        "tail": unlinked_tail(),
    }
    return render(request, "moderation/audit/list.html", context)


@require_safe
@permission_required(VIEW_AUDIT, raise_exception=True)
def audit_entry(request: HttpRequest, entry_id: int) -> HttpResponse:
    """Show everything that an entry recorded, and its place in the hash chain."""
    listed = entry_for(request.user, entry_id)
    packed = AuditEntry.objects.filter(pk=entry_id).values_list("ids", flat=True).first()
    ids = unpack_ids(packed)
    link = listed.link
    context = {
        "nav": "audit",
        "listed": listed,
        "entry": listed.entry,
        "title": label_of(listed.entry.action),
        "facts": all_facts(listed.entry.details),
        "details": json.dumps(listed.entry.details, indent=2, ensure_ascii=False, sort_keys=True),
        "ids": ids[:MAX_SHOWN_IDS],
        "other_ids": max(0, len(ids) - MAX_SHOWN_IDS),
        "link": link,
        "hash": bytes(link.hash).hex() if link else "",
        "month": timezone.localtime(listed.entry.at).date().replace(day=1).isoformat(),
    }
    return render(request, "moderation/audit/entry.html", context)


@require_safe
@permission_required(VIEW_AUDIT, raise_exception=True)
def audit_csv(request: HttpRequest) -> StreamingHttpResponse:
    """Export the entries of the same filters as CSV."""
    entries = _export(request)
    return attach(as_csv(entries), "text/csv; charset=utf-8", "audit.csv")


@require_safe
@permission_required(VIEW_AUDIT, raise_exception=True)
def audit_json(request: HttpRequest) -> StreamingHttpResponse:
    """Export the entries of the same filters as a JSON array; an ID is a string."""
    entries = _export(request)
    return attach(as_json(entries), "application/json", "audit.json")


def _export(request: HttpRequest) -> Iterator[ListedEntry]:
    chosen = {name: request.GET[name] for name in FILTERS if request.GET.get(name)}
    return export_entries(_parse_query(request.GET), chosen=chosen, actor=actor_of(request))


def _parse_query(query: QueryDict) -> AuditQuery:
    """Return the query of a URL. Raises `BadInput`."""
    server, channel, message = _read(query, "server"), _read_id(query, "channel"), _read_id(query, "message")
    if message is not None and channel is None:
        raise BadInput(_("Enter the ID of the channel too: a message is looked up in its channel."))
    last_day = _read_day(query, "until")
    return AuditQuery(
        person=_read_person(query),
        action=_read_action(query),
        guild_ids=guilds_named(server) if server else None,
        channel_id=channel if message is None else None,
        chat_user_id=_read_id(query, "user"),
        purge_id=_read_id(query, "purge"),
        message=None if message is None or channel is None else (channel, message),
        since=_read_day(query, "since"),
        # The last day belongs to the period.
        until=None if last_day is None else last_day + dt.timedelta(days=1),
    )


def _read(query: QueryDict, name: str) -> str:
    text = query.get(name, "").strip()
    if "\x00" in text or len(text) > 200:
        raise BadInput(_("Remove special characters, and enter at most 200 characters."))
    return text


def _read_id(query: QueryDict, name: str) -> int | None:
    text = _read(query, name)
    return parse_snowflake(text) if text else None


def _read_person(query: QueryDict) -> int | None:
    name = _read(query, "person")
    if not name:
        return None
    account = account_named(name)
    if account is None:
        raise BadInput(_("There is no account “%(name)s”. Enter a user name.") % {"name": name})
    return account.pk


def _read_action(query: QueryDict) -> str:
    action = _read(query, "action")
    if action and action not in AUDIT_ACTIONS:
        raise BadInput(_("Unknown action “%(action)s”. Choose one of the filters.") % {"action": action})
    return action


def _read_day(query: QueryDict, name: str) -> dt.datetime | None:
    """Return the midnight of a day in the viewer's time zone."""
    text = _read(query, name)
    if not text:
        return None
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        day = dt.date.min
    if day.year not in _YEARS:
        raise BadInput(_("“%(text)s” is not a valid date. Use a format like 2026-03-11.") % {"text": text})
    return dt.datetime.combine(day, dt.time(), tzinfo=timezone.get_current_timezone())
