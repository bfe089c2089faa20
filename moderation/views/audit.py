"""The audit log: the list with its filters, one entry, and the exports as CSV and JSON."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.operations.health.channel_list import guild_names, guilds_named
from moderation.domain.datetimes import parse_bound
from moderation.domain.packing import unpack_ids
from moderation.models import AuditEntry
from moderation.operations.access.audit_chain import unlinked_tail
from moderation.operations.access.audit_monitoring import is_late
from moderation.operations.lookup.audit_log import (
    VIEW_AUDIT,
    AuditPage,
    AuditQuery,
    ListedEntry,
    account_named,
    account_names,
    entry_for,
    export_entries,
    list_entries,
)
from moderation.operations.lookup.audit_names import (
    channel_id_of,
    chat_user_id_of,
    newest_purges,
    purge_id_of,
    purge_named,
)
from moderation.operations.selection.parsing import AmbiguousName
from moderation.presentation.audit import AUDIT_ACTIONS, all_facts, label_of
from moderation.views.audit_exports import as_csv, as_json
from moderation.views.exports import attach
from moderation.views.picks import MAX_TYPED_CHARACTERS, Chosen, describe_choice, describe_cut, describe_rows
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
    page: AuditPage | None = None
    query: AuditQuery | None = None
    refused: dict[str, Any] = {}
    try:
        query = _parse_query(request)
        page = list_entries(request.user, query, before=parse_snowflake(before) if before else None)
    except AmbiguousName as error:
        refused = {
            "error_message": error.question,
            "candidates": describe_rows(error.candidates),
            "candidates_cut": describe_cut(error),
            "candidate_field": "channel" if error.is_of_channels else "user",
        }
    except BadInput as error:
        refused = {"error_message": error.text}
    of_purge = None if query is None or query.purge_id is None else purge_named(request.user, query.purge_id)
    now, tail = timezone.localtime(), unlinked_tail()
    context = {
        "nav": "audit",
        "page": page,
        **refused,
        "chosen": _describe_chosen(request, query),
        "purges": newest_purges(request.user) if of_purge is None else (),
        "of_purge": of_purge,
        "is_first": not before,
        "filters": {name: request.GET[name].replace("\x00", "") for name in FILTERS if request.GET.get(name)},
        "actions": sorted(((action, str(label)) for action, label in AUDIT_ACTIONS.items()), key=lambda one: one[1]),
        "people": account_names(request.user, VIEW_AUDIT),
        "guilds": guild_names(request.user, VIEW_AUDIT),
        "month": now.date().replace(day=1).isoformat(),
        "tail": tail,
        "tail_is_late": is_late(tail.oldest, now),
    }
    return render(request, "moderation/audit/list.html", context, status=400 if refused else 200)


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
        "is_late": link is None and is_late(listed.entry.at, timezone.now()),
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
    return export_entries(_parse_query(request), chosen=chosen, actor=actor_of(request))


def _describe_chosen(request: HttpRequest, query: AuditQuery | None) -> dict[str, Chosen]:
    """Return the channel and the chat user that the filters name, by field. query: None if it was refused."""
    channel, person = (request.GET.get(name, "") for name in ("channel", "user"))
    if query is not None:
        # Of a link too.
        channel_id = query.channel_id if query.message is None else query.message[0]
        channel = "" if channel_id is None else str(channel_id)
        person = "" if query.chat_user_id is None else str(query.chat_user_id)
    return describe_choice(request.user, channel=channel, person=person)


def _parse_query(request: HttpRequest) -> AuditQuery:
    """Return the query of a URL. Raises `BadInput`, also for names that nothing or several have."""
    query = request.GET
    server, typed = _read(query, "server"), _read(query, "channel")
    channel = channel_id_of(request.user, typed) if typed else None
    message = parse_snowflake(text) if (text := _read(query, "message")) else None
    if message is not None and channel is None:
        raise BadInput(_("Enter the channel too: a message is looked up in its channel."))
    chat_user, purge = _read(query, "user"), _read(query, "purge")
    return AuditQuery(
        person=_read_person(query),
        action=_read_action(query),
        guild_ids=guilds_named(request.user, server, VIEW_AUDIT) if server else None,
        channel_id=channel if message is None else None,
        chat_user_id=chat_user_id_of(request.user, chat_user) if chat_user else None,
        purge_id=purge_id_of(purge) if purge else None,
        message=None if message is None or channel is None else (channel, message),
        since=_read_time(query, "since"),
        until=_read_time(query, "until", is_end=True),
    )


def _read(query: QueryDict, name: str) -> str:
    text = query.get(name, "").strip()
    if "\x00" in text:
        raise BadInput(_("A filter cannot contain a NUL character. Remove it."))
    if len(text) > MAX_TYPED_CHARACTERS:
        raise BadInput(_("Enter at most %(count)s characters in a filter.") % {"count": MAX_TYPED_CHARACTERS})
    return text


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


def _read_time(query: QueryDict, name: str, *, is_end: bool = False) -> dt.datetime | None:
    """Return the beginning of the period, or its end. Raises `BadInput`, also for years that no entry is of."""
    text = _read(query, name)
    if not text:
        return None
    time = parse_bound(text, now=timezone.localtime(), is_end=is_end)
    if time.year not in _YEARS:
        raise BadInput(
            _("Enter a date with a year from %(first)s to %(last)s.") % {"first": _YEARS[0], "last": _YEARS[-1]}
        )
    return time
