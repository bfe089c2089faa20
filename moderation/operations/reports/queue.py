"""Queue of cases, each the reports of one message: open ones oldest first, resolved ones newest first, by key."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection
from django.db.models import Q

from chatstore.domain.errors import Forbidden, NotFound
from chatstore.domain.messages import Message
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, ChatUser, ReportCase
from chatstore.models.reports import ReportCaseQuerySet
from chatstore.operations.gateway.timeline import name_users
from chatstore.operations.rights import VIEW_CHANNELS, restrict, scope_for
from chatstore.store import scans
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import Actor, may_in, require

VIEW_REPORTS = "chatstore.view_reportcase"
RESOLVE_REPORTS = "chatstore.change_reportcase"

CASES_PER_PAGE = 25
CASES_BEFORE = 8
"""Cases listed before the one that is open."""

MAX_COUNTED = 100
"""Counts end here, so that none reads more rows; pages show "99+"."""

_CASES = ReportCase._meta.db_table


@dataclass(frozen=True, slots=True)
class OpenCases:
    """Number of open cases, at most `MAX_COUNTED`, and when the oldest of them was opened."""

    count: int = 0
    oldest_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class ListedCase:
    """A case. author: of the message, if the chat users include them. this_week: the author's messages that were
    reported in the last seven days, at most `MAX_COUNTED`: the same for all of an author's cases. message: the reported
    one, in a list, if it is there and the viewer may open its channel.
    """

    case: ReportCase
    author: ChatUser | None
    this_week: int
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class CasePage:
    """Page of cases. is_first: no case comes before. after: exclusive cursor of the next page, or None.

    users: those whom their messages mention, by ID.
    """

    cases: Sequence[ListedCase]
    users: Mapping[int, ChatUser]
    is_first: bool
    after: int | None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Ids of the cases before and after a case in its list, or None."""

    previous: int | None
    following: int | None


def visible_cases(user: Actor) -> ReportCaseQuerySet:
    """Return the cases that a user may see, with their channels and moderators; none without the permission."""
    scope = scope_for(user, VIEW_REPORTS)
    cases = restrict(ReportCase.objects.all(), scope, guild="channel__guild_id", channel="channel_id")
    return cases.select_related("channel__guild", "claimed_by", "resolved_by")


def case_for(user: Actor, case_id: int, right: str = VIEW_REPORTS) -> ReportCase:
    """Return a case. Raises `NotFound` if it is missing or not visible to the user.

    Raises `Forbidden` if it is visible and the user does not have the right in its channel.
    """
    case = visible_cases(user).filter(pk=case_id).first()
    if case is None:
        raise NotFound(_("There is no report %(id)s.", id=str(case_id)))
    if not may_in(user, right, case.channel):
        raise Forbidden(_("Your role in this channel does not include this. Ask an administrator."))
    return case


def count_open_cases(user: Actor) -> OpenCases:
    """Return how many cases are open, by one read of an index."""
    opened = list(visible_cases(user).open().values_list("opened_at", flat=True)[:MAX_COUNTED])
    return OpenCases(len(opened), opened[0]) if opened else OpenCases()


def list_cases(user: Actor, *, resolved: bool = False, after: int | None = None) -> CasePage:
    """Return a page of open or resolved cases. after: the last case of the page before. Raises `Forbidden`."""
    require(user, VIEW_REPORTS)
    last = visible_cases(user).filter(pk=after).first() if after is not None else None
    if after is not None and not resolved:
        # The last case of the page before may have been resolved since.
        opened = visible_cases(user).open().filter(pk__gt=after)
        return _describe_page(user, list(opened[: CASES_PER_PAGE + 1]), is_first=False)
    cases = _following(user, last) if last is not None else _in_state(user, resolved=resolved)
    return _describe_page(user, list(cases[: CASES_PER_PAGE + 1]), is_first=last is None)


def list_around(user: Actor, case: ReportCase) -> CasePage:
    """Return the page of the list with a case and a few before it. Raises `Forbidden`."""
    require(user, VIEW_REPORTS)
    before = list(_preceding(user, case)[: CASES_BEFORE + 1])
    following = list(_following(user, case)[:CASES_PER_PAGE])
    return _describe_page(
        user, [*reversed(before[:CASES_BEFORE]), case, *following], is_first=len(before) <= CASES_BEFORE
    )


def neighbours_of(user: Actor, case: ReportCase) -> Neighbours:
    """Return the cases before and after a case in its list."""
    return Neighbours(
        previous=_preceding(user, case).values_list("pk", flat=True).first(),
        following=_following(user, case).values_list("pk", flat=True).first(),
    )


def next_case(user: Actor, *, after: int) -> int | None:
    """Return the next open case that no other moderator has claimed: after the given one, or else the oldest."""
    cases = visible_cases(user).open()
    free = cases.free() | cases.filter(claimed_by=user.pk)
    ids = free.values_list("pk", flat=True)
    return ids.filter(pk__gt=after).first() or ids.exclude(pk=after).first()


def describe_cases(user: Actor, cases: Sequence[ReportCase]) -> list[ListedCase]:
    """Return cases with their authors, and their staff told apart: three statements for any number."""
    mark_shared_names(user, (by for case in cases for by in (case.claimed_by, case.resolved_by)), right=VIEW_REPORTS)
    author_ids = sorted({case.author_id for case in cases if case.author_id is not None})
    authors = ChatUser.objects.with_namesakes().in_bulk(author_ids)
    this_week = _count_week(user, author_ids)
    return [
        ListedCase(case, authors.get(case.author_id), this_week[case.author_id])
        if case.author_id is not None
        else ListedCase(case, None, 0)
        for case in cases
    ]


def _describe_page(user: Actor, cases: list[ReportCase], *, is_first: bool) -> CasePage:
    shown = cases[:CASES_PER_PAGE]
    messages = _read_messages(user, shown)
    listed = [
        replace(one, message=messages.get((one.case.channel_id, one.case.message_id)))
        for one in describe_cases(user, shown)
    ]
    older = shown[-1].pk if len(cases) > CASES_PER_PAGE else None
    return CasePage(listed, name_users(messages.values()), is_first=is_first, after=older)


def _read_messages(user: Actor, cases: Sequence[ReportCase]) -> dict[tuple[int, int], Message]:
    """Return the reported messages that are there by channel and ID, of the channels that the user may open."""
    posts = {(case.channel_id, case.message_id) for case in cases if may_in(user, VIEW_CHANNELS, case.channel)}
    return {(message.channel_id, message.message_id): message for message in scans.read_messages_in(posts)}


def _in_state(user: Actor, *, resolved: bool) -> ReportCaseQuerySet:
    cases = visible_cases(user)
    return cases.resolved() if resolved else cases.open()


def _following(user: Actor, case: ReportCase) -> ReportCaseQuerySet:
    cases = _in_state(user, resolved=case.resolved_at is not None)
    if case.resolved_at is None:
        return cases.filter(pk__gt=case.pk)
    # The first condition alone bounds the part of the index that is read.
    earlier = Q(resolved_at__lt=case.resolved_at) | Q(pk__lt=case.pk)
    return cases.filter(earlier, resolved_at__lte=case.resolved_at)


def _preceding(user: Actor, case: ReportCase) -> ReportCaseQuerySet:
    """Return the cases before a case in its list, the nearest first."""
    cases = _in_state(user, resolved=case.resolved_at is not None).reverse()
    if case.resolved_at is None:
        return cases.filter(pk__lt=case.pk)
    later = Q(resolved_at__gt=case.resolved_at) | Q(pk__gt=case.pk)
    return cases.filter(later, resolved_at__gte=case.resolved_at)


def _count_week(user: Actor, author_ids: Sequence[int]) -> dict[int, int]:
    """Return how many messages of each author were reported in the last seven days.

    Of the channels whose reports the user may see.
    """
    scope, places = scope_for(user, VIEW_REPORTS), ""
    values: list[Any] = []
    if not scope.is_everything:
        places = (
            f"AND recent.channel_id IN (SELECT id FROM {Channel._meta.db_table} WHERE guild_id = ANY(%s) "
            "OR (guild_id IS NOT NULL AND %s) OR (guild_id IS NULL AND %s) OR id = ANY(%s)) "
        )
        values = [sorted(scope.guilds), scope.every_guild, scope.direct, sorted(scope.channels)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT listed.author_id, (SELECT count(*) FROM (SELECT FROM {_CASES} AS recent "
            "WHERE recent.author_id = listed.author_id "
            f"AND recent.opened_at > statement_timestamp() - interval '7 days' {places}LIMIT %s) AS week) "
            "FROM unnest(%s::bigint[]) AS listed (author_id)",
            [*values, MAX_COUNTED, list(author_ids)],
        )
        return dict(cursor.fetchall())
