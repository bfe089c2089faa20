"""Template tag of the notices on every page: raids in progress, and what waits for the viewer's approval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatstore.domain.milliseconds import time_at
from moderation.models import Erasure, PurgeApproval
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import VIEW_PURGES, Actor
from moderation.operations.erasure.requests import open_requests
from moderation.operations.purging.approvals import open_approvals, were_all_read
from moderation.operations.purging.listing import ShownPurge, newest_under_way
from moderation.operations.raids.detection import MAX_NOTICES, count_raids, list_raids
from moderation.presentation.formats import format_number
from moderation.presentation.html import fill_named
from moderation.presentation.page_urls import url_of
from moderation.templatetags.chat import ago, at_least, staff_name, visible

register = template.Library()

SHOWN_BY_PAGES = ("hides_notice_of", "awaited", "awaited_erasure")
"""What pages show themselves, as they name it in their context: a raid's channel, and a request for approval or for
permanent deletion.
"""

Request = TypeVar("Request", PurgeApproval, Erasure)


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice with its label, and a link to the page on which the viewer can act. severity: its CSS class.

    purge: the text and the URL of a purge that acts on it already. keys: of each thing that it is about: a page that is
    open tells new ones by these.
    """

    severity: str
    label: str
    facts: Sequence[str]
    url: str
    action: str
    purge: tuple[str, str] | None = None
    keys: Sequence[str] = ()


@register.simple_tag(takes_context=True)
def page_notices(context: template.Context) -> list[Notice]:
    """Return what the viewer may act on, without what the page itself is about. Error pages may have no viewer."""
    user = context.get("user")
    if user is None or not user.is_authenticated:
        return []
    return [
        *_raids(user, hidden=context.get("hides_notice_of")),
        *_waiting(user, _approvals_of(context, user), _erasures_of(context, user)),
    ]


@register.simple_tag(takes_context=True)
def notices_url(context: template.Context) -> str:
    """Return the URL of the notices of this page, without what it shows itself."""
    shown = {name: context.get(name) for name in SHOWN_BY_PAGES}
    query = urlencode({name: key for name, key in shown.items() if key})
    return url_of("notices") + (f"?{query}" if query else "")


def _raids(user: Actor, *, hidden: int | None) -> Iterator[Notice]:
    """Yield a notice for each of the newest raids, and one for all others.

    hidden: the channel of the page, which shows its raid itself.
    """
    began = {raid: time_at(raid.details["since_ms"]) for raid in list_raids(user, except_in=hidden)}
    purges = newest_under_way(user, {int(raid.subject): since for raid, since in began.items()})
    mark_shared_names(user, (shown.purge.moderator for shown in purges.values()), right=VIEW_PURGES)
    for raid, since in began.items():
        channel_id = int(raid.subject)
        facts = (visible(raid.summary), fill_named(_("began %(when)s"), when=ago(since)))
        purge = _describe_purge(user, purges[channel_id]) if channel_id in purges else None
        action = _("Review") if purge else _("Review and clear")
        yield Notice("critical", _("raid"), facts, url_of("raid", channel_id), action, purge, [f"finding-{raid.pk}"])
    if len(began) == MAX_NOTICES and (others := count_raids(user, except_in=hidden) - MAX_NOTICES) > 0:
        pattern = ngettext(
            "%(count)s more possible raid; its channel is marked",
            "%(count)s more possible raids; their channels are marked",
            others,
        )
        counted = pattern % {"count": format_number(others)}
        yield Notice("critical", _("raid"), [counted], url_of("home"), _("Show channels"))


def _describe_purge(user: Actor, shown: ShownPurge) -> tuple[str, str]:
    """Return the text about a purge of a raid that is under way, and its URL."""
    if shown.purge.moderator_id == user.pk:
        text = fill_named(_("Your purge is %(state)s"), state=shown.state_label)
    else:
        name = staff_name(shown.purge.moderator)
        text = fill_named(_("A purge by %(name)s is %(state)s"), name=name, state=shown.state_label)
    return text, url_of("purge", shown.purge.pk)


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[Request]):
    """Requests of one kind that wait for the viewer's approval, without the one that the page shows itself.

    are_others: the page shows one. is_exact: no more of them wait.
    """

    requests: Sequence[Request]
    are_others: bool
    is_exact: bool = True


def _approvals_of(context: template.Context, user: Actor) -> _Waiting[PurgeApproval]:
    """Return the requests that the page lists, if it does, otherwise all."""
    listed, shown = context.get("approval_requests"), context.get("awaited")
    found = open_approvals(user) if listed is None else [approval for _purge, approval in listed]
    others = [request for request in found if request.pk != shown]
    return _Waiting(others, len(others) < len(found), were_all_read(found))


def _erasures_of(context: template.Context, user: Actor) -> _Waiting[Erasure]:
    """Return the requests for permanent deletion in the same way."""
    listed, shown = context.get("erasure_requests"), context.get("awaited_erasure")
    found = open_requests(user) if listed is None else [erasure for _purge, erasure in listed]
    others = [request for request in found if request.pk != shown]
    return _Waiting(others, len(others) < len(found))


def _waiting(user: Actor, approvals: _Waiting[PurgeApproval], erasures: _Waiting[Erasure]) -> Iterator[Notice]:
    """Yield one notice about all requests: a link to the purge of a single one, otherwise to the list of them."""
    count = len(approvals.requests) + len(erasures.requests)
    if not count:
        return
    if count == 1:
        found = approvals.requests
        mark_shared_names(user, [(found or erasures.requests)[0].requested_by], right=VIEW_PURGES)
        text, url = _describe_approval(found[0]) if found else _describe_erasure(erasures.requests[0])
    else:
        text = _count_waiting(approvals, erasures)
        url = url_of("home") + "#attention" if erasures.requests else url_of("purges")
    keys = [
        *(f"approval-{request.pk}" for request in approvals.requests),
        *(f"erasure-{request.pk}" for request in erasures.requests),
    ]
    yield Notice("warning", _("your approval"), [text], url, _("Review"), keys=keys)


def _describe_approval(request: PurgeApproval) -> tuple[str, str]:
    """Return the text about a request and the URL of its purge."""
    count = request.purge.manifest
    pattern = ngettext(
        "%(name)s requests approval to delete %(count)s message",
        "%(name)s requests approval to delete %(count)s messages",
        count,
    )
    text = fill_named(pattern, name=_name(request), count=format_number(count))
    return text, url_of("purge", request.purge_id) + "#approval"


def _describe_erasure(request: Erasure) -> tuple[str, str]:
    """Return the same about a request for permanent deletion."""
    text = fill_named(_("%(name)s requests permanent deletion"), name=_name(request))
    return text, url_of("purge", request.purge_id) + "#erasure-request"


def _name(request: PurgeApproval | Erasure) -> SafeString:
    return staff_name(request.requested_by)


def _count_waiting(approvals: _Waiting[PurgeApproval], erasures: _Waiting[Erasure]) -> str:
    """Format what waits, each kind with its number: "50 or more purges and 5 permanent deletions wait for approval"."""
    purges, deletions = _count_purges(approvals), _count_deletions(erasures)
    if purges and deletions:
        return _("%(purges)s and %(deletions)s wait for approval") % {"purges": purges, "deletions": deletions}
    return _("%(requests)s wait for approval") % {"requests": purges or deletions}


def _count_purges(waiting: _Waiting[PurgeApproval]) -> str:
    count = len(waiting.requests)
    pattern = (
        ngettext("%(count)s other purge", "%(count)s other purges", count)
        if waiting.are_others
        else ngettext("%(count)s purge", "%(count)s purges", count)
    )
    return pattern % {"count": at_least(count, waiting.is_exact)} if count else ""


def _count_deletions(waiting: _Waiting[Erasure]) -> str:
    count = len(waiting.requests)
    pattern = (
        ngettext("%(count)s other permanent deletion", "%(count)s other permanent deletions", count)
        if waiting.are_others
        else ngettext("%(count)s permanent deletion", "%(count)s permanent deletions", count)
    )
    return pattern % {"count": format_number(count)} if count else ""
