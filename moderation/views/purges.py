"""The list of purges, the page of one purge, and the actions on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from chatstore.confirmation import require_confirmation
from chatstore.domain.controls import show_hidden
from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.snowflakes import parse_snowflake
from moderation.domain.state_labels import AWAITING_APPROVAL, STATE_LABELS
from moderation.domain.states import PurgeState
from moderation.forms import ConfirmForm, read_cursor, read_manifest_hash, read_selected
from moderation.models import Purge
from moderation.operations.access.visibility import purge_for, visible_channels
from moderation.operations.preview.exclusions import exclude_messages, include_messages
from moderation.operations.preview.narrowing import keep_author, keep_channel, keep_other_authors
from moderation.operations.purging.controls import CONTROLS
from moderation.operations.purging.lifecycle import confirm_purge, discard_preview
from moderation.operations.purging.listing import list_deleted, list_purges
from moderation.presentation.html import fill_named
from moderation.presentation.texts import translate
from moderation.tasks import enqueue_on_commit, enqueue_scan_on_commit
from moderation.views.attention import list_attention
from moderation.views.polling import render_live
from moderation.views.purge_page import describe_live, describe_page, describe_zoom, panel_version, poll_version
from moderation.views.session import actor_of

_NARROW = {"keep_author": keep_author, "only_author": keep_other_authors, "keep_channel": keep_channel}
"""Operations by the name of the button, whose value is an ID."""

_COMMON_FILTERS = (
    *(PurgeState.RUNNING, PurgeState.PAUSED, PurgeState.READY, AWAITING_APPROVAL),
    *(PurgeState.DONE, PurgeState.DONE_WITH_FAILURES, PurgeState.UNDONE, PurgeState.CANCELLED),
)
"""Filters by state that are always shown. All others are in a list that opens."""


@require_safe
@permission_required("moderation.view_purge", raise_exception=True)
def purges(request: HttpRequest) -> HttpResponse:
    """List purges, newest first; `state`, `by` and `channel` filter. `view=deleted` lists what is deleted now."""
    state, moderator = request.GET.get("state", ""), request.GET.get("by", "").strip()
    channel_id = read_cursor(request.GET, "channel")
    before = read_cursor(request.GET, "before")
    if request.GET.get("view") == "deleted":
        deleted = list_deleted(request.user, moderator=moderator, before=before)
        context = {"nav": "purges", "page": deleted, "view": "deleted", "by": moderator}
        context["pressed"] = _pressed_filters(by=moderator)
        return render(request, "moderation/purge/list.html", context)
    listed = list_purges(request.user, state=state, moderator=moderator, channel_id=channel_id, before=before)
    channels = visible_channels(request.user).select_related("guild")
    channel = channels.filter(pk=channel_id).first() if channel_id is not None else None
    context = {
        "nav": "purges",
        "page": listed,
        "filters": _label_filters(_COMMON_FILTERS),
        "more_filters": _label_filters(shown for shown in STATE_LABELS if shown not in _COMMON_FILTERS),
        "state": state,
        "by": moderator,
        "in_channel": channel_id,
        "channel": channel,
        "pressed": _pressed_filters(
            state=translate(STATE_LABELS[state]) if state else "",
            by=moderator,
            channel="" if channel_id is None else str(channel.full_name if channel else channel_id),
        ),
    }
    if not (state or moderator or channel_id is not None or before is not None):
        context |= list_attention(request.user)[0].as_context()
    return render(request, "moderation/purge/list.html", context)


def _label_filters(states: Iterable[str]) -> dict[str, str]:
    """Return the labels of filters by state, in the words of the rows."""
    return {shown: capfirst(translate(STATE_LABELS[shown])) for shown in states}


def _pressed_filters(*, state: str = "", by: str = "", channel: str = "") -> dict[str, SafeString | str]:
    """Return the labels of the filters in force, by their names. All values are as typed, or "" if not given."""
    pressed: dict[str, SafeString | str] = {"state": state} if state else {}
    if by:
        pressed["by"] = fill_named(gettext("By <bdi>%(name)s</bdi>"), name=show_hidden(by))
    if channel:
        pressed["channel"] = fill_named(gettext("In <bdi>%(name)s</bdi>"), name=show_hidden(channel))
    return pressed


@require_safe
@permission_required("moderation.view_purge", raise_exception=True)
def purge(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Show one purge: its scan, preview, progress and outcome. `zoom` and `at` choose the time of its strips."""
    shown = purge_for(request.user, purge_id)
    if request.headers.get("HX-Target") == "times":
        context = {"times": describe_zoom(request.user, shown, request.GET)}
        return render(request, "moderation/purge/_times.html", context)
    return show_purge(request, shown)


@require_safe
@permission_required("moderation.view_purge", raise_exception=True)
def purge_live(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Render the part of the page that changes; htmx fetches it again while a job runs.

    204 while nothing has changed since the version that the page has.
    """
    if request.GET.get("version") == poll_version(request.user, purge_id):
        return HttpResponse(status=204)
    context = describe_live(request.user, purge_for(request.user, purge_id))
    # After the scan, at the end, and with the decision on a request, the rest of the page changes too.
    is_same = str(context["awaited"]) == request.GET.get("awaited", "")
    context["fragment"] = True
    return render_live(
        request, "moderation/purge/_live.html", context, keep_polling=bool(context["polling"]) and is_same
    )


@require_safe
@permission_required("moderation.view_purge", raise_exception=True)
def purge_panel(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Return the fragment that shows a purge beside a page; htmx fetches it again while a job runs.

    204 while nothing has changed since the version that the page has.
    """
    version = panel_version(request.user, purge_id)
    if request.GET.get("version") == version:
        return HttpResponse(status=204)
    context = describe_live(request.user, purge_for(request.user, purge_id)) | {"version": version}
    return render(request, "moderation/purge/_panel.html", context)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def purge_confirm(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Confirm what the preview showed. The manifest hash proves that it has not changed since."""
    shown = purge_for(request.user, purge_id)
    form = ConfirmForm(request.POST)
    if not form.is_valid():
        if "reason" in form.errors:
            return show_purge(request, shown, error_message=gettext("Enter a reason. It is stored with the purge."))
        return show_purge(request, shown, error_message=gettext("The preview is incomplete. Review it again."))
    if shown.manifest > settings.CONFIRM_ABOVE_MESSAGES:
        require_confirmation(request)
    try:
        confirmed = confirm_purge(
            shown.pk,
            moderator=actor_of(request),
            reason=form.cleaned_data["reason"],
            manifest_hash=bytes.fromhex(form.cleaned_data["manifest_hash"]),
        )
    except BadInput as error:
        shown.refresh_from_db()
        return show_purge(request, shown, error_message=error.text)
    enqueue_on_commit(confirmed.pk)
    return redirect("purge", confirmed.pk)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def purge_control(request: HttpRequest, purge_id: int, action: str) -> HttpResponse:
    """Pause, resume, cancel, finish or retry a purge."""
    if action not in CONTROLS:
        raise NotFound(gettext("There is no action “%(name)s”.") % {"name": action})
    shown = purge_for(request.user, purge_id)
    CONTROLS[action](shown.pk, moderator=actor_of(request))
    enqueue_on_commit(shown.pk)
    return redirect("purge", shown.pk)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def purge_discard(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Discard a preview, also while it is scanned."""
    discard_preview(purge_id, moderator=actor_of(request))
    return redirect("purge", purge_id)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def purge_exclude(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Exclude the selected messages from a preview."""
    return _change_preview(request, purge_id, exclude_messages)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def purge_include(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Include excluded messages in a preview again."""
    return _change_preview(request, purge_id, include_messages)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def purge_narrow(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Keep one author or one channel, or everything but one author. The page of a new preview may follow."""
    shown = purge_for(request.user, purge_id)
    name = next((name for name in _NARROW if name in request.POST), "")
    if not name:
        raise BadInput(gettext("Choose an author or a channel."))
    try:
        narrowed = _NARROW[name](
            shown.pk,
            parse_snowflake(request.POST[name]),
            moderator=actor_of(request),
            manifest_hash=read_manifest_hash(request.POST),
        )
    except BadInput as error:
        shown.refresh_from_db()
        return show_purge(request, shown, error_message=error.text)
    if narrowed.state == PurgeState.SCANNING:
        enqueue_scan_on_commit(narrowed.pk)
    return redirect("purge", narrowed.pk)


def _change_preview(request: HttpRequest, purge_id: int, change: Callable[..., Purge]) -> HttpResponse:
    shown = purge_for(request.user, purge_id)
    try:
        change(
            shown.pk,
            read_selected(request.POST),
            moderator=actor_of(request),
            manifest_hash=read_manifest_hash(request.POST),
        )
    except BadInput as error:
        shown.refresh_from_db()
        return show_purge(request, shown, error_message=error.text)
    return redirect("purge_messages" if request.POST.get("then") == "list" else "purge", shown.pk)


def act_on(request: HttpRequest, shown: Purge, action: Callable[[], object]) -> HttpResponse:
    """Run an action and return to the page; if it is rejected, the page shows why."""
    try:
        action()
    except BadInput as error:
        shown.refresh_from_db()
        return show_purge(request, shown, error_message=error.text)
    return redirect("purge", shown.pk)


def show_purge(request: HttpRequest, shown: Purge, *, error_message: str = "") -> HttpResponse:
    """Render the page. error_message: why the requested action was rejected."""
    context: dict[str, Any] = describe_page(request.user, shown, request.GET)
    context["error_message"] = error_message
    return render(request, "moderation/purge/purge.html", context, status=400 if error_message else 200)
