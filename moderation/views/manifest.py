"""All messages of a purge, to review, exclude before it is confirmed, and restore afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from chatstore.domain.errors import BadInput, StoreUnavailable
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models import Channel, ChatUser
from chatstore.operations.gateway.timeline import name_users
from moderation.domain.outcomes import DeletionStatus, PurgeOutcome
from moderation.domain.state_labels import label_of_state
from moderation.domain.states import WITHOUT_COPIES, PurgeState
from moderation.forms import read_cursor
from moderation.models import Purge
from moderation.operations.access.reads import record_purge_read
from moderation.operations.access.visibility import ADD_PURGE, Actor, may_over_visible, purge_for, visible_channels
from moderation.operations.lookup.mentioned import Mentioned, name_mentioned
from moderation.operations.preview.deleted_since import count_deleted_since
from moderation.operations.preview.manifest import ManifestEntry, ManifestPage, list_excluded, list_manifest
from moderation.operations.selection.summary import ListedPurge, describe_purges
from moderation.operations.steps.totals import count_restored, totals_of
from moderation.operations.undo.import_guard import imports_of
from moderation.operations.undo.requests import can_be_undone
from moderation.presentation.texts import messages_not_shown
from moderation.views.rows import MessageRow, rows_of

_OUTCOMES = {
    PurgeOutcome.ALREADY_GONE: gettext_lazy("already gone"),
    PurgeOutcome.FAILED: gettext_lazy("failed"),
    PurgeOutcome.HELD: gettext_lazy("held"),
}

_UNDONE_IN_PART = frozenset({PurgeState.PARTLY_UNDONE, PurgeState.UNDO_EXPIRED})
"""States in which some messages may have been restored, and others not."""


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A message of the list. row: None if there is no copy of it. new_channel: set where another channel begins.

    label: its outcome. css: the class of the row, which is that of a status, or "failed".
    """

    entry: ManifestEntry
    row: MessageRow | None
    label: str
    css: str
    new_channel: Channel | None
    may_select: bool


@require_safe
@permission_required("moderation.view_purge", raise_exception=True)
def purge_messages(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Show a page of a purge's messages; `channel`, `author` and `import` filter."""
    purge = purge_for(request.user, purge_id)
    channel_id, author_id = read_cursor(request.GET, "channel"), read_cursor(request.GET, "author")
    import_id = _read_import(request.GET)
    restored = next((each for each in imports_of(purge) if each.import_id == import_id), None) if import_id else None
    is_filtered = any(each is not None for each in (channel_id, author_id, import_id))
    error_message, excluded, page = "", [], ManifestPage((), None)
    try:
        page = list_manifest(
            request.user,
            purge,
            after=_read_after(request.GET),
            channel_id=channel_id,
            author_id=author_id,
            import_id=import_id,
        )
        excluded = list_excluded(request.user, purge) if purge.state == PurgeState.READY else []
    except StoreUnavailable as error:
        error_message = messages_not_shown(error.text)
    if purge.confirmed_at is not None and page.entries:
        record_purge_read(request.user, purge, channel_id=channel_id, after=request.GET.get("after", ""))
    shown = [*page.entries, *excluded]
    users = name_users(entry.message for entry in shown if entry.message is not None)
    may_change = may_over_visible(request.user, ADD_PURGE, purge)
    may_exclude = may_change and purge.state == PurgeState.READY
    may_undo = may_change and can_be_undone(purge)
    (listed,) = describe_purges(request.user, [purge])
    context = {
        "nav": "purges",
        "purge": purge,
        "summary": listed.summary,
        "state_label": _label_state(listed),
        "manifest_hash": bytes(purge.manifest_hash).hex() if purge.manifest_hash else "",
        "entries": (rows := entry_rows(purge, page.entries, users, may_exclude=may_exclude, may_undo=may_undo)),
        "deleted_since": (deleted_since := count_deleted_since(purge)),
        "left": purge.manifest - (deleted_since or 0),
        "excluded": entry_rows(purge, excluded, users, may_exclude=may_exclude, may_undo=False),
        "users": users,
        "mentioned": name_mentioned_in(request.user, shown),
        "error_message": error_message,
        "may_exclude": may_exclude,
        "may_undo": may_undo,
        "may_restore_all": may_undo and import_id is None and any(row.may_select for row in rows),
        "author": ChatUser.objects.with_namesakes().filter(pk=author_id).first() if author_id is not None else None,
        "author_id": author_id,
        "channel_id": channel_id,
        "only_channel": visible_channels(request.user).filter(pk=channel_id).first()
        if channel_id is not None
        else None,
        "restored_part": count_restored(purge) if purge.state in _UNDONE_IN_PART and not is_filtered else None,
        "has_several_channels": len(purge.selection["channels"]) != 1,
        "import_id": import_id,
        "restored": restored,
        "is_first": "after" not in request.GET,
        "next": _next_url(page, channel=channel_id, author=author_id, **{"import": import_id}),
    }
    return render(request, "moderation/manifest/manifest.html", context)


def name_mentioned_in(user: Actor, entries: Sequence[ManifestEntry]) -> Mentioned:
    """Return what some messages of a purge mention."""
    messages = (entry.message for entry in entries if entry.message is not None)
    return name_mentioned(user, messages, channels=(entry.channel for entry in entries))


def _label_state(listed: ListedPurge) -> str:
    """Return the state in words, as the purge's own page has it."""
    if listed.purge.state != PurgeState.DONE_WITH_FAILURES:
        return listed.state_label
    totals = totals_of(listed.purge)
    return label_of_state(listed.shown_state, failed=totals.failed, held=totals.held)


def _read_after(query: QueryDict) -> tuple[int, int] | None:
    text = query.get("after", "")
    if not text:
        return None
    channel_id, colon, message_id = text.partition(":")
    if not colon:
        raise BadInput(gettext("“after” must name a channel and a message: “channel:message”."))
    return parse_snowflake(channel_id), parse_snowflake(message_id)


def _read_import(query: QueryDict) -> str | None:
    text = query.get("import", "")
    if not re.fullmatch("(?:[0-9a-f]{32})?", text):
        raise BadInput(gettext("This is not the ID of an import."))
    return text or None


def _next_url(page: ManifestPage, **narrowed: int | str | None) -> str:
    if page.after is None:
        return ""
    return "?" + urlencode(
        {"after": "{}:{}".format(*page.after)} | {name: i for name, i in narrowed.items() if i is not None}
    )


def entry_rows(
    purge: Purge, entries: Sequence[ManifestEntry], users: dict[int, ChatUser], *, may_exclude: bool, may_undo: bool
) -> list[EntryRow]:
    """Return the rows of some messages of a purge, and what the viewer may select."""
    rows: list[EntryRow] = []
    before: int | None = None
    for entry in entries:
        # Each line shows its own date: messages between two of them are not shown.
        row = replace(rows_of([entry.message], users)[0], day=None) if entry.message is not None else None
        is_away = entry.is_undone or entry.is_withdrawn
        is_deleted = entry.outcome in (PurgeOutcome.DELETED, PurgeOutcome.ALREADY_GONE) and not is_away
        rows.append(
            EntryRow(
                entry,
                row,
                _describe_outcome(purge, entry),
                _css_of(purge, entry),
                entry.channel if entry.channel.pk != before else None,
                may_select=may_exclude or (may_undo and is_deleted),
            )
        )
        before = entry.channel.pk
    return rows


def _will_be_deleted(purge: Purge, entry: ManifestEntry) -> bool:
    is_waiting = entry.outcome is PurgeOutcome.WAITING and purge.state != PurgeState.EXPIRED
    return is_waiting and entry.is_live and not entry.is_undone


def _css_of(purge: Purge, entry: ManifestEntry) -> str:
    if _will_be_deleted(purge, entry):
        return DeletionStatus.TO_DELETE
    if entry.outcome is PurgeOutcome.FAILED:
        return DeletionStatus.FAILED
    if entry.outcome is None or not entry.is_live:
        return DeletionStatus.KEPT if entry.is_live else DeletionStatus.DELETED
    return DeletionStatus.RESTORED if entry.is_undone else DeletionStatus.KEPT


def _describe_outcome(purge: Purge, entry: ManifestEntry) -> str:
    if _will_be_deleted(purge, entry):
        return gettext("to delete")
    if entry.outcome is None:
        return gettext("kept") if entry.is_live else gettext("already gone")
    if entry.is_undone:
        return gettext("restored") if entry.is_live else gettext("not restored")
    if entry.outcome is PurgeOutcome.DELETED:
        if entry.is_live:
            return gettext("present again")
        return gettext("permanently deleted") if purge.state in WITHOUT_COPIES else gettext("deleted")
    if entry.outcome is PurgeOutcome.WAITING and not entry.is_live:
        return gettext("already gone")
    if purge.state == PurgeState.EXPIRED:
        return gettext("not deleted")
    return str(_OUTCOMES.get(entry.outcome, gettext("left")))
