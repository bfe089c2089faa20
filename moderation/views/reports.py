"""Members' reports: the queue as a list, the case in hand with its message in context, claims and resolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from chatstore.domain.controls import show_hidden
from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.reports import Resolution
from chatstore.domain.snowflakes import time_of
from chatstore.models import ReportCase
from chatstore.models.users import User
from moderation.forms import read_cursor
from moderation.operations.access.visibility import ADD_PURGE, may_in
from moderation.operations.lookup.message_history import MessageStatus, history_of_message
from moderation.operations.reports.details import details_of
from moderation.operations.reports.queue import (
    RESOLVE_REPORTS,
    VIEW_REPORTS,
    CasePage,
    ListedCase,
    case_for,
    describe_cases,
    list_around,
    list_cases,
    neighbours_of,
    next_case,
)
from moderation.operations.reports.resolving import claim_case, release_case, resolve_case
from moderation.presentation.people import name_unknown
from moderation.presentation.reports import default_reason
from moderation.tasks import enqueue_on_commit
from moderation.views.message import approved_erasure, describe_context, describe_status
from moderation.views.rows import Writer
from moderation.views.session import actor_of

AROUND = 7
"""Messages shown in context, including the reported one."""

STATES = ("", "resolved")


@require_safe
@permission_required(VIEW_REPORTS, raise_exception=True)
def reports(request: HttpRequest) -> HttpResponse:
    """List open or resolved cases, with the first one in hand; `state` chooses, `after` pages."""
    state = request.GET.get("state", "")
    if state not in STATES:
        raise BadInput(gettext("Unknown state “%(state)s”. Choose one of the filters.") % {"state": state})
    page = list_cases(request.user, resolved=state == "resolved", after=read_cursor(request.GET, "after"))
    case = page.cases[0].case if page.cases else None
    return _show(request, page, case, context={"is_resolved": state == "resolved"})


@require_safe
@permission_required(VIEW_REPORTS, raise_exception=True)
def report(request: HttpRequest, case_id: int) -> HttpResponse:
    """Show a case in its list."""
    return _show_case(request, case_for(request.user, case_id))


@require_POST
@permission_required(RESOLVE_REPORTS, raise_exception=True)
def report_claim(request: HttpRequest, case_id: int) -> HttpResponse:
    """Claim a case for a few minutes, or renew the claim."""
    return _act(request, case_id, lambda actor: claim_case(case_id, actor=actor))


@require_POST
@permission_required(RESOLVE_REPORTS, raise_exception=True)
def report_release(request: HttpRequest, case_id: int) -> HttpResponse:
    """End one's own claim."""
    return _act(request, case_id, lambda actor: release_case(case_id, actor=actor))


@require_POST
@permission_required(RESOLVE_REPORTS, raise_exception=True)
def report_resolve(request: HttpRequest, case_id: int) -> HttpResponse:
    """Resolve a case, and open the next one. A message is deleted by a purge of its own."""
    case = case_for(request.user, case_id)
    try:
        resolution, reason = _read_resolution(request, case)
        case = resolve_case(case_id, actor=actor_of(request), resolution=resolution, reason=reason)
    except NotFound:
        raise
    except BadInput as error:
        case.refresh_from_db()
        return _show_case(request, case, error_message=error.text, reason=request.POST.get("reason", ""))
    if case.purge_id is not None:
        enqueue_on_commit(case.purge_id)
    following = next_case(request.user, after=case_id)
    url = reverse("reports") if following is None else reverse("report", args=[following])
    return redirect(f"{url}?done={case_id}")


def author_name(listed: ListedCase) -> str:
    """Return the name of the author of a reported message."""
    if listed.author is not None:
        return show_hidden(str(listed.author))
    author_id = listed.case.author_id
    return gettext("unknown author") if author_id is None else name_unknown(author_id)


def is_claimed(case: ReportCase) -> bool:
    """Return whether a claim is in force."""
    return case.claimed_until is not None and case.claimed_until > timezone.now()


def _act(request: HttpRequest, case_id: int, act: Callable[[User], ReportCase]) -> HttpResponse:
    try:
        act(actor_of(request))
    except NotFound:
        raise
    except BadInput as error:
        return _show_case(request, case_for(request.user, case_id), error_message=error.text)
    return redirect("report", case_id)


def _read_resolution(request: HttpRequest, case: ReportCase) -> tuple[Resolution, str]:
    try:
        resolution = Resolution(request.POST.get("resolution", ""))
    except ValueError:
        raise BadInput(gettext("Choose whether to delete the message, keep it, or take no action.")) from None
    reason = request.POST.get("reason", "").strip()
    if not reason and resolution is Resolution.REMOVED:
        reason = default_reason(case.category)
    return resolution, reason


def _show_case(request: HttpRequest, case: ReportCase, *, error_message: str = "", reason: str = "") -> HttpResponse:
    context = {
        "is_resolved": case.resolved_at is not None,
        "is_chosen": True,
        "error_message": error_message,
        "reason": reason,
    }
    return _show(request, list_around(request.user, case), case, context=context)


def _show(request: HttpRequest, page: CasePage, case: ReportCase | None, *, context: dict[str, Any]) -> HttpResponse:
    done = read_cursor(request.GET, "done")
    shown = {
        "nav": "reports",
        "page": page,
        "case": case,
        "done": None if done is None else case_for(request.user, done),
        **({} if case is None else _describe(request, case)),
        **context,
    }
    status = 400 if context.get("error_message") else 200
    return render(request, "moderation/reports/reports.html", shown, status=status)


def _describe(request: HttpRequest, case: ReportCase) -> dict[str, Any]:
    """Return the context of the case in hand: the record of its author, and its message among its neighbours."""
    user = request.user
    (listed,) = describe_cases(user, [case])
    details = details_of(user, case)
    history = history_of_message(user, case.channel_id, case.message_id)
    is_own = case.claimed_by_id == user.pk
    return {
        "listed": listed,
        "who": Writer(
            case.author_id or 0,
            author_name(listed),
            is_bot=bool(listed.author and listed.author.is_bot),
            is_webhook=False,
        ),
        "details": details,
        "neighbours": neighbours_of(user, case),
        "is_claimed": is_claimed(case),
        "is_own_claim": is_own and is_claimed(case),
        "may_resolve": case.resolved_at is None
        and may_in(user, RESOLVE_REPORTS, case.channel)
        and (is_own or not is_claimed(case)),
        "is_deleted": history.is_deleted,
        "may_delete": history.status is MessageStatus.LIVE and may_in(user, ADD_PURGE, case.channel),
        "default_reason": default_reason(case.category),
        "channel": history.channel,
        "message_history": history,
        "posted_at": time_of(case.message_id),
        "status": history.status.value,
        "chip": describe_status(history),
        "erased": approved_erasure(history),
        **describe_context(user, history, around=AROUND),
    }
