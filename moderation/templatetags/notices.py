"""Template tag of the notices on every page: raids in progress, and purges that wait for the viewer's approval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from moderation.models import PurgeApproval
from moderation.operations.access.visibility import Actor
from moderation.operations.purging.approvals import open_approvals
from moderation.operations.raids.detection import list_raids
from moderation.presentation.formats import format_number
from moderation.presentation.html import fill, fill_named
from moderation.presentation.page_urls import url_of
from moderation.templatetags.chat import staff_name, visible

register = template.Library()


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice with its label, and a link to the page on which the viewer can act. severity: its CSS class."""

    severity: str
    label: str
    text: str
    url: str
    action: str


@register.simple_tag(takes_context=True)
def page_notices(context: template.Context) -> list[Notice]:
    """Return what the viewer may act on, without what the page itself is about. Error pages may have no viewer."""
    user = context.get("user")
    if user is None or not user.is_authenticated:
        return []
    return [
        *_raids(user, hidden=context.get("hides_notice_of")),
        *_approvals(_approvals_of(context, user), hidden=context.get("awaited")),
    ]


def _raids(user: Actor, *, hidden: int | None) -> Iterator[Notice]:
    """Yield a notice for each raid. hidden: the channel of the page, which shows its raid itself."""
    for raid in list_raids(user, except_in=hidden):
        url = url_of("raid", int(raid.subject))
        yield Notice("critical", _("raid"), visible(raid.summary), url, _("Review and clear"))


def _approvals_of(context: template.Context, user: Actor) -> list[PurgeApproval]:
    """Return the requests that wait for the viewer's approval: those that the page lists, if it lists them."""
    listed = context.get("approval_requests")
    return open_approvals(user) if listed is None else [approval for _purge, approval in listed]


def _approvals(found: Iterable[PurgeApproval], *, hidden: int | str | None) -> Iterator[Notice]:
    """Yield one notice about all requests for approval. hidden: the request that the page shows."""
    waiting = [request for request in found if request.pk != hidden]
    if not waiting:
        return
    if len(waiting) == 1:
        request, count = waiting[0], waiting[0].purge.manifest
        text: str = fill_named(
            ngettext(
                "%(name)s requests approval to delete %(count)s message",
                "%(name)s requests approval to delete %(count)s messages",
                count,
            ),
            name=fill("<bdi>{}</bdi>", staff_name(request.requested_by)),
            count=format_number(count),
        )
        url = url_of("purge", request.purge_id) + "#approval"
    else:
        pattern = ngettext("%(count)s purge waits for approval", "%(count)s purges wait for approval", len(waiting))
        text, url = pattern % {"count": format_number(len(waiting))}, url_of("purges")
    yield Notice("warning", _("your approval"), text, url, _("Review"))
