"""Template tag of the notices on every page: raids in progress, and what waits for the viewer's approval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatstore.domain.milliseconds import time_at
from moderation.models import Erasure, PurgeApproval
from moderation.operations.access.visibility import Actor
from moderation.operations.erasure.requests import open_requests
from moderation.operations.purging.approvals import open_approvals, were_all_read
from moderation.operations.purging.listing import ShownPurge, newest_under_way
from moderation.operations.raids.detection import list_raids
from moderation.presentation.formats import format_number
from moderation.presentation.html import fill, fill_named
from moderation.presentation.page_urls import url_of
from moderation.templatetags.chat import ago, at_least, staff_name, visible

register = template.Library()


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice with its label, and a link to the page on which the viewer can act. severity: its CSS class.

    purge: the text and the URL of a purge that acts on it already.
    """

    severity: str
    label: str
    text: str
    url: str
    action: str
    purge: tuple[str, str] | None = None


@register.simple_tag(takes_context=True)
def page_notices(context: template.Context) -> list[Notice]:
    """Return what the viewer may act on, without what the page itself is about. Error pages may have no viewer."""
    user = context.get("user")
    if user is None or not user.is_authenticated:
        return []
    return [
        *_raids(user, hidden=context.get("hides_notice_of")),
        *_waiting(*_approvals_of(context, user), _erasures_of(context, user)),
    ]


def _raids(user: Actor, *, hidden: int | None) -> Iterator[Notice]:
    """Yield a notice for each raid. hidden: the channel of the page, which shows its raid itself."""
    began = {raid: time_at(raid.details["since_ms"]) for raid in list_raids(user, except_in=hidden)}
    purges = newest_under_way(user, {int(raid.subject): since for raid, since in began.items()})
    for raid, since in began.items():
        channel_id = int(raid.subject)
        text = fill_named(_("%(raid)s · began %(when)s"), raid=visible(raid.summary), when=ago(since))
        purge = _describe_purge(purges[channel_id]) if channel_id in purges else None
        yield Notice("critical", _("raid"), text, url_of("raid", channel_id), _("Review and clear"), purge)


def _describe_purge(shown: ShownPurge) -> tuple[str, str]:
    """Return the text about a purge of a raid that is under way, and its URL."""
    name = fill("<bdi>{}</bdi>", staff_name(shown.purge.moderator))
    text = fill_named(_("A purge by %(name)s is %(state)s"), name=name, state=shown.state_label)
    return text, url_of("purge", shown.purge.pk)


def _approvals_of(context: template.Context, user: Actor) -> tuple[list[PurgeApproval], bool]:
    """Return the requests that wait for the viewer's approval, those that the page lists if it does, and whether all.

    Without the one that the page shows itself.
    """
    listed, shown = context.get("approval_requests"), context.get("awaited")
    found = open_approvals(user) if listed is None else [approval for _purge, approval in listed]
    return [request for request in found if request.pk != shown], were_all_read(found)


def _erasures_of(context: template.Context, user: Actor) -> list[Erasure]:
    """Return the requests for permanent deletion in the same way."""
    listed, erasing = context.get("erasure_requests"), context.get("erasing")
    found = open_requests(user) if listed is None else [erasure for _purge, erasure in listed]
    return [request for request in found if erasing is None or request != erasing.request]


def _waiting(approvals: Sequence[PurgeApproval], is_exact: bool, erasures: Sequence[Erasure]) -> Iterator[Notice]:
    """Yield one notice about all requests: a link to the purge of a single one, otherwise to the list of them.

    is_exact: no other approvals wait.
    """
    if not approvals and not erasures:
        return
    if len(approvals) + len(erasures) == 1:
        text, url = _describe_approval(approvals[0]) if approvals else _describe_erasure(erasures[0])
    else:
        text = _count_waiting(len(approvals), len(erasures), is_exact=is_exact)
        url = url_of("home") + "#attention" if erasures else url_of("purges")
    yield Notice("warning", _("your approval"), text, url, _("Review"))


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
    return fill("<bdi>{}</bdi>", staff_name(request.requested_by))


def _count_waiting(approvals: int, erasures: int, *, is_exact: bool) -> str:
    """Format what waits, each kind with its number: "50 or more purges and 5 permanent deletions wait for approval"."""
    shown = at_least(approvals, is_exact)
    if not erasures:
        pattern = ngettext("%(count)s purge waits for approval", "%(count)s purges wait for approval", approvals)
        return pattern % {"count": shown}
    if not approvals:
        pattern = ngettext(
            "%(count)s permanent deletion waits for approval",
            "%(count)s permanent deletions wait for approval",
            erasures,
        )
        return pattern % {"count": format_number(erasures)}
    purges = ngettext("%(count)s purge", "%(count)s purges", approvals) % {"count": shown}
    deletions = ngettext("%(count)s permanent deletion", "%(count)s permanent deletions", erasures)
    return _("%(purges)s and %(deletions)s wait for approval") % {
        "purges": purges,
        "deletions": deletions % {"count": format_number(erasures)},
    }
