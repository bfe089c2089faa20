"""A case in detail: the members' reports, earlier decisions about the message, and the record of its author."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from chatstore.domain.reports import Resolution
from chatstore.models import ChatUser, Report, ReportCase
from moderation.operations.access.visibility import Actor, require
from moderation.operations.lookup.chat_users import MatchedByPurge, account_made_at, purges_of_author
from moderation.operations.notes import ListedNote, list_notes
from moderation.operations.preview.breakdown import purges_kept_by_holds
from moderation.operations.reports.queue import MAX_COUNTED, VIEW_REPORTS, visible_cases

REPORTS_SHOWN = 10
DECISIONS_SHOWN = 5
PURGES_SHOWN = 3
NOTES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class MemberReport:
    """A member's report. reporter: None if the chat users do not include them."""

    report: Report
    reporter: ChatUser | None


@dataclass(frozen=True, slots=True)
class AuthorRecord:
    """What is known of a reported author.

    made_at: creation of the account, if the id contains it. reported, removed, kept: messages in other cases, by
    outcome, each at most `MAX_COUNTED`. purges: the last that included their messages; notes: the newest.
    """

    made_at: dt.datetime | None
    reported: int
    removed: int
    kept: int
    purges: Sequence[MatchedByPurge]
    notes: Sequence[ListedNote]


@dataclass(frozen=True, slots=True)
class CaseDetails:
    """A case in detail. reports: the newest. decisions: earlier cases of the same message, newest first.

    author: None if the author of the message is unknown. kept_by_holds: IDs of those of the author's purges of which
    holds kept all of their messages.
    """

    reports: Sequence[MemberReport]
    decisions: Sequence[ReportCase]
    author: AuthorRecord | None
    kept_by_holds: frozenset[int]


def details_of(user: Actor, case: ReportCase) -> CaseDetails:
    """Return a case in detail. Raises `Forbidden`."""
    require(user, VIEW_REPORTS)
    reports = list(Report.objects.filter(case=case).order_by("-id")[:REPORTS_SHOWN])
    reporters = ChatUser.objects.with_namesakes().in_bulk({report.reporter_id for report in reports})
    same_message = visible_cases(user).filter(channel=case.channel_id, message_id=case.message_id)
    author = None if case.author_id is None else _record_of(user, case.author_id, except_case=case.pk)
    purges = [] if author is None else [matched.listed.purge for matched in author.purges]
    return CaseDetails(
        reports=[MemberReport(report, reporters.get(report.reporter_id)) for report in reports],
        decisions=list(same_message.resolved().filter(pk__lt=case.pk).order_by("-id")[:DECISIONS_SHOWN]),
        author=author,
        kept_by_holds=purges_kept_by_holds(case.author_id, purges) if case.author_id and purges else frozenset(),
    )


def _record_of(user: Actor, author_id: int, *, except_case: int) -> AuthorRecord:
    cases = visible_cases(user).filter(author_id=author_id).exclude(pk=except_case).order_by()
    return AuthorRecord(
        made_at=account_made_at(author_id, now=timezone.now()),
        reported=cases[:MAX_COUNTED].count(),
        removed=cases.filter(resolution=Resolution.REMOVED)[:MAX_COUNTED].count(),
        kept=cases.filter(resolution=Resolution.KEPT)[:MAX_COUNTED].count(),
        purges=purges_of_author(user, author_id, limit=PURGES_SHOWN),
        notes=list_notes(user, author_id, limit=NOTES_SHOWN).notes,
    )
