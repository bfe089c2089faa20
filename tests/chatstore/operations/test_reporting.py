"""A gateway hands in members' reports: one open report of each member and message, also of messages that are gone."""

from __future__ import annotations

import pytest

from chatstore import gateway
from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import ReportCase
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.gateway.messages import MAX_FUTURE_MS
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, make_channel, now_ms, old_ids, write


def cases_of(channel_id: int) -> list[ReportCase]:
    return list(ReportCase.objects.filter(channel_id=channel_id))


def test_reports_of_one_message_are_one_case_and_count_once_for_each_member() -> None:
    channel, (first, second) = make_channel(), old_ids(2)
    write(channel, [first, second])
    reported = [
        gateway.report_message(channel.pk, first, actor=member, category="spam", text=" again ")
        for member in (73, 74, 73)
    ]
    gateway.report_message(channel.pk, second, actor=73, category="other")
    assert reported == [True, True, False]
    one, other = cases_of(channel.pk)
    assert (one.message_id, one.author_id, one.report_count, one.category) == (first, VICTOR, 2, "spam")
    assert (other.message_id, other.report_count) == (second, 1)
    assert {report.text for report in one.reports.all()} == {"again"}


def test_a_message_that_is_gone_is_reported_with_the_author_that_the_gateway_names() -> None:
    channel, (unknown, named) = make_channel(), old_ids(2)
    gateway.report_message(channel.pk, unknown, actor=73, category="hate")
    gateway.report_message(channel.pk, named, actor=73, category="hate", author_id=VICTOR)
    assert [case.author_id for case in cases_of(channel.pk)] == [None, VICTOR]


def test_a_report_after_the_decision_opens_another_case() -> None:
    channel, (message_id,) = make_channel(), old_ids(1)
    write(channel, [message_id])
    gateway.report_message(channel.pk, message_id, actor=73, category="spam")
    mona = make_user("mona", group="moderators")
    ReportCase.objects.filter(channel=channel).update(resolved_at=ClockTimestamp(), resolved_by=mona, resolution="kept")
    assert gateway.report_message(channel.pk, message_id, actor=73, category="spam")
    assert [case.resolution for case in cases_of(channel.pk)] == ["kept", ""]


def test_values_that_cannot_be_stored_are_refused() -> None:
    channel, (message_id,) = make_channel(), old_ids(1)
    future = make_snowflake(now_ms() + 2 * MAX_FUTURE_MS)
    for wrong in (
        {"message_id": future},
        {"message_id": "7"},
        {"actor": None},
        {"category": "dislike"},
        {"text": "a\x00b"},
        {"text": "x" * 1_001},
        {"author_id": 1 << 63},
    ):
        given = {"message_id": message_id, "actor": 73, "category": "spam"} | wrong
        with pytest.raises(BadInput):
            gateway.report_message(channel.pk, **given)  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="not registered"):
        gateway.report_message(channel.pk + 1, message_id, actor=73, category="spam")
    assert not cases_of(channel.pk)
