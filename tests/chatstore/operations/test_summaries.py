"""The row of a channel in the table of all channels follows what was measured, deleted and purged there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Q
from django.test import override_settings

from chatstore.domain.health import ChannelState
from chatstore.domain.live import EMPTY
from chatstore.domain.runs import Severity
from chatstore.models import Channel, ChannelSummary, Finding
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.operations.findings.channels import HEAVY_BUCKET, MISSING_SURVIVORS
from chatstore.operations.findings.records import Problem, acknowledge_finding, open_finding, sync_findings
from chatstore.operations.health import probes
from chatstore.operations.health.channel_health import read_channel_health
from chatstore.operations.health.summaries import known_of, refresh_states, refresh_summaries
from chatstore.operations.ledger import summaries
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.ledger.summaries import count_uncovered, mark_due, note_purge
from chatstore.store import ledger
from tests.chatstore.channels import fresh_id, now_ms, spread_ids, write_messages
from tests.chatstore.figures import note

BUCKET = 300


@pytest.fixture
def channel() -> Channel:
    return Channel.objects.create(id=fresh_id(), name="harbour")


def row_of(channel: Channel) -> ChannelSummary:
    return ChannelSummary.objects.get(channel=channel)


def test_every_new_channel_has_a_row_that_is_due() -> None:
    ids = [fresh_id(), fresh_id()]
    Channel.objects.bulk_create([Channel(id=one, name="harbour") for one in ids])
    for row in ChannelSummary.objects.filter(channel_id__in=ids):
        assert (row.state, row.tombstones, row.refreshed_at) == (ChannelState.UNKNOWN, None, None)
        assert row.due_at is not None
    assert ChannelSummary.objects.filter(channel_id__in=ids).count() == 2


def test_a_row_has_the_figures_of_the_health_page(channel: Channel) -> None:
    for bucket in range(BUCKET, BUCKET + 4):
        ledger.ensure_row(channel.pk, bucket)
    ledger.set_live(channel.pk, BUCKET, EMPTY, read_began_us=postgres_now_us())
    note(channel.pk, BUCKET + 1, tombstones=7, bytes=60_000_000)
    note(channel.pk, BUCKET + 2, tombstones=1_500, newest_page_us=2_410, newest_page_tombstones=3, newest_page_rows=51)
    refresh_summaries([channel.pk])
    row, health = row_of(channel), read_channel_health(None, channel.pk)
    assert known_of(row) == health.known
    assert (row.state, health.state) == (ChannelState.TOMBSTONES, ChannelState.TOMBSTONES)
    assert (row.tombstones, row.tombstones_bucket, row.bytes, row.bytes_bucket) == (
        1_500, BUCKET + 2, 60_000_000, BUCKET + 1
    )  # fmt: skip
    assert (row.page_us, row.page_rows, row.page_tombstones) == (2_410, 51, 3)
    assert (row.empty_buckets, row.buckets) == (1, 4)
    assert row.refreshed_at is not None
    assert row.tombstones_at is not None
    assert row.refreshed_at - row.tombstones_at < dt.timedelta(minutes=1)


def test_a_probe_marks_the_row_and_counts_the_rows_of_the_page(channel: Channel) -> None:
    ChannelSummary.objects.filter(channel=channel).update(due_at=None)
    write_messages(channel.pk, spread_ids(60, newest_ms=now_ms() - 1_000))
    probes.probe_channel(channel.pk, now=postgres_now())
    assert row_of(channel).due_at is not None
    refresh_summaries([channel.pk])
    row = row_of(channel)
    assert row.page_rows is not None
    assert row.page_rows >= 51
    assert row.page_tombstones == 0


def test_a_change_of_the_limits_changes_the_stored_states(channel: Channel) -> None:
    note(channel.pk, BUCKET, tombstones=500, newest_page_us=2_410)
    refresh_summaries([channel.pk])
    assert row_of(channel).state == ChannelState.HEALTHY
    with override_settings(HEALTH_WARN_TOMBSTONES=500):
        refresh_states()
        assert row_of(channel).state == ChannelState.TOMBSTONES
    refresh_states()
    assert row_of(channel).state == ChannelState.HEALTHY


def test_an_open_finding_makes_the_stored_state_as_bad_until_it_is_closed(channel: Channel, ada: User) -> None:
    note(channel.pk, BUCKET, newest_page_us=2_410)
    refresh_summaries([channel.pk])
    subject = f"{channel.pk}:{BUCKET}"
    heavy = Problem(Severity.WARNING, "2 GB in one partition.", {"bytes": 2_000_000_000})
    sync_findings(HEAVY_BUCKET, {subject: heavy}, among=Q(subject=subject))
    assert row_of(channel).state == ChannelState.HEAVY
    loss = open_finding(MISSING_SURVIVORS, f"{subject}:1.0", Problem(Severity.CRITICAL, "A message is missing."))
    assert row_of(channel).state == ChannelState.MISSING_MESSAGES
    health = read_channel_health(None, channel.pk)
    assert (health.figure_state, health.state) == (ChannelState.HEALTHY, ChannelState.MISSING_MESSAGES)
    assert health.decisive_finding == loss
    # A measurement does not end a finding.
    refresh_summaries([channel.pk])
    assert row_of(channel).state == ChannelState.MISSING_MESSAGES
    acknowledge_finding(loss.pk, actor=ada)
    assert row_of(channel).state == ChannelState.HEAVY
    sync_findings(HEAVY_BUCKET, {}, among=Q(subject=subject))
    row = row_of(channel)
    assert (row.state, row.finding_state) == (ChannelState.HEALTHY, None)
    assert read_channel_health(None, channel.pk).decisive_finding is None


def test_figures_that_are_worse_than_a_finding_stay_the_reason(channel: Channel) -> None:
    note(channel.pk, BUCKET, tombstones=1_500, newest_page_us=2_410)
    refresh_summaries([channel.pk])
    subject = f"{channel.pk}:{BUCKET}"
    open_finding(HEAVY_BUCKET, subject, Problem(Severity.WARNING, "61 MB in one partition.", {"bytes": 61_000_000}))
    assert row_of(channel).state == ChannelState.TOMBSTONES
    assert read_channel_health(None, channel.pk).decisive_finding is None


def test_states_are_right_again_after_findings_were_changed_by_hand(channel: Channel) -> None:
    note(channel.pk, BUCKET, newest_page_us=2_410)
    refresh_summaries([channel.pk])
    subject = f"{channel.pk}:{BUCKET}:1.0"
    finding = open_finding(MISSING_SURVIVORS, subject, Problem(Severity.CRITICAL, "A message is missing."))
    Finding.objects.filter(pk=finding.pk).delete()
    refresh_states()
    assert row_of(channel).state == ChannelState.HEALTHY


def test_a_finding_and_the_state_are_stored_together(channel: Channel) -> None:
    subject = f"{channel.pk}:{BUCKET}:1.0"
    with transaction.atomic():
        open_finding(MISSING_SURVIVORS, subject, Problem(Severity.CRITICAL, "A message is missing."))
        assert row_of(channel).state == ChannelState.MISSING_MESSAGES
        transaction.set_rollback(True)
    assert row_of(channel).state == ChannelState.UNKNOWN
    assert not Finding.objects.filter(subject=subject).exists()


def test_a_row_that_is_due_stays_due_since_then(channel: Channel) -> None:
    due_at = row_of(channel).due_at
    mark_due([channel.pk, fresh_id()])
    assert row_of(channel).due_at == due_at


def test_the_last_purge_is_noted(channel: Channel) -> None:
    ChannelSummary.objects.filter(channel=channel).update(due_at=None)
    now = postgres_now()
    note_purge(4_711, {channel.pk: now})
    note_purge(4_710, {channel.pk: now - dt.timedelta(hours=1)})
    row = row_of(channel)
    assert row.last_purge_id == 4_711
    assert row.last_purged_at == now
    assert row.due_at is not None


def test_deletes_that_no_repair_covers_are_counted(channel: Channel) -> None:
    assert row_of(channel).uncovered_deletes is None
    now = postgres_now()
    for bucket, sent_by in ((BUCKET, now - dt.timedelta(minutes=30)), (BUCKET + 1, now)):
        note_deletes(channel.pk, bucket, 5, sent_by=sent_by)
    count_uncovered(None)
    assert row_of(channel).uncovered_deletes == 10
    count_uncovered(now - dt.timedelta(minutes=10))
    assert row_of(channel).uncovered_deletes == 5
    changed_at = row_of(channel).uncovered_at
    count_uncovered(now - dt.timedelta(minutes=10))
    assert row_of(channel).uncovered_at == changed_at
    # Hours are the unit: covered deletes may count again beside uncovered ones, never the reverse.
    note_deletes(channel.pk, BUCKET, 2, sent_by=now)
    count_uncovered(now - dt.timedelta(minutes=10), channel_ids=[channel.pk])
    assert row_of(channel).uncovered_deletes in (7, 12), "12 unless an hour began between the two"
    count_uncovered(now + dt.timedelta(days=1))
    assert row_of(channel).uncovered_deletes == 0


def test_no_statement_updates_more_channels_than_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "CHANNELS_AT_ONCE", 2)
    channels = [Channel.objects.create(id=fresh_id(), name="harbour") for _ in range(5)]
    for number, channel in enumerate(channels, start=1):
        note_deletes(channel.pk, BUCKET, number, sent_by=postgres_now())
    sizes: list[int] = []

    def record(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if "UPDATE" in sql:
            sizes.append(len(params[0]))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        count_uncovered(None)
    assert [row_of(channel).uncovered_deletes for channel in channels] == [1, 2, 3, 4, 5]
    # Channels of other tests may be counted too.
    assert len(sizes) >= 3
    assert max(sizes) == 2
