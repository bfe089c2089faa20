"""Cases are claimed for a while and resolved once; a message is removed by a purge that can be undone."""

from __future__ import annotations

import datetime as dt

import pytest

from chatstore.domain.errors import BadInput, Forbidden
from chatstore.domain.reports import Resolution
from chatstore.models import Channel, ReportCase
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.store.messages import read_message
from moderation.models import AuditEntry, Purge
from moderation.operations.reports.details import details_of
from moderation.operations.reports.queue import list_around, list_cases, next_case
from moderation.operations.reports.resolving import claim_case, release_case, resolve_case
from tests.chatstore.channels import fresh_id
from tests.chatstore.reports import report
from tests.moderation.channels import make_channel, old_ids, run_to_end, write


@pytest.fixture
def channel() -> Channel:
    """A channel with three messages."""
    made = make_channel()
    write(made, old_ids(3))
    return made


@pytest.fixture
def case(channel: Channel) -> ReportCase:
    """The reports of its first message."""
    return report(channel, old_ids(3)[0])


def actions_on(case: ReportCase) -> list[str]:
    entries = AuditEntry.objects.filter(channel_id=case.channel_id, details__report=str(case.pk)).order_by("id")
    return list(entries.values_list("action", flat=True))


def test_a_claim_keeps_others_out_until_it_expires(case: ReportCase, mona: User, lena: User) -> None:
    claim_case(case.pk, actor=mona)
    claim_case(case.pk, actor=mona)
    with pytest.raises(BadInput, match=f"{mona.username} has claimed this report"):
        claim_case(case.pk, actor=lena)
    with pytest.raises(BadInput, match=f"{mona.username} has claimed this report"):
        resolve_case(case.pk, actor=lena, resolution=Resolution.KEPT, reason="")
    ReportCase.objects.filter(pk=case.pk).update(claimed_until=ClockTimestamp() - dt.timedelta(seconds=1))
    claim_case(case.pk, actor=lena)
    release_case(case.pk, actor=lena)
    case.refresh_from_db()
    assert case.claimed_by is None
    assert actions_on(case) == ["report_claimed", "report_claimed", "report_released"]


def test_a_case_is_resolved_once_and_says_by_whom(case: ReportCase, mona: User, lena: User) -> None:
    resolved = resolve_case(case.pk, actor=mona, resolution=Resolution.KEPT, reason=" within the rules ")
    assert (resolved.resolution, resolved.reason, resolved.resolved_by) == ("kept", "within the rules", mona)
    with pytest.raises(BadInput, match=f"{mona.username} has already resolved"):
        resolve_case(case.pk, actor=lena, resolution=Resolution.NOTHING, reason="")
    assert actions_on(case) == ["report_resolved"]
    assert read_message(case.channel_id, case.message_id) is not None


def test_removing_deletes_exactly_the_message_by_a_purge(case: ReportCase, channel: Channel, mona: User) -> None:
    resolved = resolve_case(case.pk, actor=mona, resolution=Resolution.REMOVED, reason="spam")
    assert resolved.purge_id is not None
    purge = run_to_end(Purge.objects.get(pk=resolved.purge_id))
    assert (purge.manifest, purge.reason, purge.moderator) == (1, "spam", mona)
    assert read_message(channel.pk, case.message_id) is None
    assert read_message(channel.pk, old_ids(3)[1]) is not None


def test_a_message_that_is_gone_is_not_resolved_as_removed(channel: Channel, mona: User) -> None:
    gone = report(channel, old_ids(3)[0] + 1)
    with pytest.raises(BadInput, match="no longer in the channel"):
        resolve_case(gone.pk, actor=mona, resolution=Resolution.REMOVED, reason="spam")
    gone.refresh_from_db()
    assert gone.resolved_at is None


def test_operators_neither_claim_nor_resolve(case: ReportCase, otto: User) -> None:
    with pytest.raises(Forbidden):
        claim_case(case.pk, actor=otto)
    with pytest.raises(Forbidden):
        resolve_case(case.pk, actor=otto, resolution=Resolution.REMOVED, reason="spam")
    with pytest.raises(Forbidden):
        list_cases(otto)


def test_a_case_is_listed_between_those_before_and_after_it(channel: Channel, mona: User) -> None:
    cases = [report(channel, message_id) for message_id in old_ids(3)]
    around = [listed.case.pk for listed in list_around(mona, cases[1]).cases]
    assert [pk for pk in around if pk in {case.pk for case in cases}] == [case.pk for case in cases]
    assert around == sorted(around)
    for case in cases:
        resolve_case(case.pk, actor=mona, resolution=Resolution.NOTHING, reason="")
    cases[1].refresh_from_db()
    around = [listed.case.pk for listed in list_around(mona, cases[1]).cases]
    assert [pk for pk in around if pk in {case.pk for case in cases}] == [case.pk for case in reversed(cases)]


def test_the_next_case_is_one_that_no_other_has_claimed(channel: Channel, mona: User, lena: User) -> None:
    first, claimed, free = (report(channel, message_id) for message_id in old_ids(3))
    claim_case(claimed.pk, actor=lena)
    following = next_case(mona, after=first.pk)
    assert following is not None
    assert first.pk < following <= free.pk
    assert following != claimed.pk


def test_the_author_s_record_counts_other_cases_by_outcome(channel: Channel, mona: User) -> None:
    author = fresh_id()
    cases = [report(channel, message_id, author=author) for message_id in old_ids(3)]
    resolve_case(cases[0].pk, actor=mona, resolution=Resolution.KEPT, reason="")
    record = details_of(mona, cases[2]).author
    assert record is not None
    assert (record.reported, record.removed, record.kept) == (2, 0, 1)
    assert details_of(mona, cases[2]).reports[0].report.reporter_id == 73


def test_all_cases_of_an_author_say_how_many_of_their_messages_were_reported_this_week(
    channel: Channel, mona: User
) -> None:
    author = fresh_id()
    cases = [report(channel, message_id, author=author) for message_id in old_ids(3)]
    before = ClockTimestamp() - dt.timedelta(days=8)
    ReportCase.objects.filter(pk=cases[0].pk).update(opened_at=before)
    listed = {one.case.pk: one.this_week for one in list_around(mona, cases[2]).cases}
    assert [listed[case.pk] for case in cases] == [2, 2, 2]
