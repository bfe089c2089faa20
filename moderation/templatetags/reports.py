"""Template tags of members' reports: the number of open cases, and the list of cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django import template
from django.contrib.auth.models import AbstractUser
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatstore.domain.controls import show_hidden
from chatstore.domain.reports import ReportCategory, Resolution
from chatstore.models import ChatUser, ReportCase
from moderation.operations.access.staff_names import distinct_name_of
from moderation.operations.reports.queue import MAX_COUNTED, CasePage, ListedCase, OpenCases, count_open_cases
from moderation.presentation import formats
from moderation.presentation.html import dotted, fill, fill_named, join
from moderation.presentation.markup import shorten
from moderation.presentation.page_urls import url_of
from moderation.presentation.reports import CATEGORY_LABELS, RESOLUTION_LABELS, format_capped
from moderation.templatetags.chat import excerpt, format_ago, staff_name, time_tag, visible
from moderation.templatetags.people import avatar
from moderation.views.reports import author_name, is_claimed

register = template.Library()

REPEATED = 2
"""Reported messages of an author in a week from which on they are mentioned."""

TEXT_CHARACTERS = 120
"""Characters of a reported message in a list: more than its line has room for."""


_OPEN_CASES = "_open_cases"
"""Attribute of the account of a request."""


@register.simple_tag(takes_context=True)
def open_reports(context: template.Context) -> OpenCases:
    """Return the number of open cases that the viewer may see, and the time of the oldest. Read once for a page."""
    user = context["user"]
    found: OpenCases | None = getattr(user, _OPEN_CASES, None)
    if found is None:
        found = count_open_cases(user)
        setattr(user, _OPEN_CASES, found)
    return found


@register.filter
def capped(count: int) -> str:
    """Format a count that ends at the limit: "7", "99+"."""
    return format_capped(count, limit=MAX_COUNTED)


@register.filter
def category_label(category: str) -> str:
    """Return the label of a category: "spam"."""
    return str(CATEGORY_LABELS[ReportCategory(category)])


@register.filter
def resolution_label(resolution: str) -> str:
    """Return the label of an outcome: "message deleted"."""
    return str(RESOLUTION_LABELS[Resolution(resolution)])


@register.filter
def repeat_label(this_week: int) -> str:
    """Return how many messages of an author were reported within a week; "" for only one."""
    if this_week < REPEATED:
        return ""
    text = ngettext(
        "author: %(count)s message reported this week",
        "author: %(count)s messages reported this week",
        this_week,
    )
    return text % {"count": capped(this_week)}


def _repeat_note(this_week: int) -> str:
    """Return the same in few words, beside the message."""
    if this_week < REPEATED:
        return ""
    text = ngettext("author: %(count)s this week", "author: %(count)s this week", this_week)
    return text % {"count": capped(this_week)}


@register.simple_tag
def claim_of(case: ReportCase) -> str:
    """Return the name of the moderator who has claimed an open case; "" if it is free."""
    return distinct_name_of(case.claimed_by) if is_claimed(case) and case.claimed_by is not None else ""


@register.simple_tag
def case_links(page: CasePage, current: ReportCase | None) -> SafeString:
    """Render the cases as items of a list, each a link that opens it."""
    return join(
        (_draw_case(listed, page.users, is_current=listed.case == current) for listed in page.cases),
        "\n",
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """What a list shows of a case, besides its message and place: facts beside the place, notes beside the message."""

    side: SafeString | str
    facts: Sequence[SafeString | str]
    notes: Sequence[SafeString] = ()


def _draw_handle(author: ChatUser | None, shown_name: str) -> SafeString | str:
    handle = author.handle_beside(shown_name) if author else ""
    return fill('\n<bdi class="handle quiet">{}</bdi>', visible(handle)) if handle else ""


def _draw_case(listed: ListedCase, users: Mapping[int, object], *, is_current: bool) -> SafeString:
    case, name = listed.case, author_name(listed)
    line = _describe_open(listed) if case.resolved_by is None else _describe_resolved(case, case.resolved_by)
    return fill(
        '<li>\n<a class="case-link" href="{}"{}>\n<span class="case-top">\n{}'
        '<span class="clip"><b><bdi>{}</bdi></b>{}</span>\n<span class="case-fact">{}</span>\n</span>\n'
        '{}\n<span class="dotted case-fact case-place" title="{}">{}</span>\n</a>\n</li>',
        url_of("report", case.pk),
        SafeString(' aria-current="true"') if is_current else "",
        avatar(listed.author, "xs") if listed.author is not None else "",
        name,
        _draw_handle(listed.author, name),
        line.side,
        _draw_text(_draw_message(listed, users), line.notes),
        visible(case.channel.full_name),
        dotted((*line.facts, fill("<bdi>{}</bdi>", visible(case.channel.full_name)))),
    )


def _draw_text(message: SafeString, notes: Sequence[SafeString]) -> SafeString:
    """Render the line of the message, with the notes at its end."""
    if not notes:
        return message
    pattern = '<span class="case-line">\n{}\n<span class="dotted case-fact clip case-notes">{}</span>\n</span>'
    return fill(pattern, message, join(notes))


def _draw_message(listed: ListedCase, users: Mapping[int, object]) -> SafeString:
    """Render the first words of the reported message; without it, that it is deleted, if the outcome does not."""
    message = listed.message
    if message is not None:
        text = show_hidden(shorten(excerpt(message.content, users), characters=TEXT_CHARACTERS, lines=1))
        return fill('<span class="small clip case-text"><bdi>{}</bdi></span>', text or _("(attachment)"))
    if listed.case.resolution == Resolution.REMOVED:
        return SafeString("")
    gone = _("not in the channel") if listed.case.author_id is None else _("message deleted")
    return fill('<span class="quiet small clip case-text">{}</span>', gone)


def _describe_open(listed: ListedCase) -> _Line:
    case = listed.case
    claimed, repeated = claim_of(case), _repeat_note(listed.this_week)
    opened = time_tag(case.opened_at, format_ago(case.opened_at, timezone.now()))
    facts = [category_label(case.category), formats.format_count(case.report_count, "report")]
    claim = fill_named(_("claimed by <bdi>%(name)s</bdi>"), name=claimed)
    notes = [
        *([fill('<span class="case-claim">{}</span>', claim)] if claimed else []),
        *([fill('<span class="repeated">{}</span>', repeated)] if repeated else []),
    ]
    return _Line(opened, facts, notes)


def _describe_resolved(case: ReportCase, by: AbstractUser) -> _Line:
    when = time_tag(case.resolved_at, format_ago(case.resolved_at, timezone.now())) if case.resolved_at else ""
    return _Line(when, [resolution_label(case.resolution), staff_name(by)])
