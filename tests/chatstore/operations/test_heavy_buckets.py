"""A bucket over a threshold in its newest measurement is reported, and resolved when a later one is below."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from chatstore.domain.buckets import bucket_at, bucket_window
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.runs import RunState, Severity
from chatstore.domain.snowflakes import unix_ms
from chatstore.models import Channel, ChannelDay, ChannelSummary, Finding, Guild, JobRun
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import HEAVY_BUCKET
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.operations.health.channel_health import read_channel_health
from chatstore.operations.health.heavy_buckets import check_heavy_buckets
from chatstore.operations.health.summaries import refresh_summaries
from chatstore.operations.jobs.runs import work_on_run
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import ledger
from chatstore.store.figures import note_figures
from chatstore.store.measuring import measure_bucket
from tests.chatstore.channels import delete_rows, fresh_id, now_ms, spread_ids, write_messages
from tests.findings import close_finding

BUCKET = 333
"""Long ago."""


@pytest.fixture
def channel_id() -> Iterator[int]:
    """Yield a named channel with very many recent deletes, so that its figures are checked."""
    guild = Guild.objects.create(pk=fresh_id(), name="Tidewalkers")
    channel = Channel.objects.create(pk=fresh_id(), name="general", guild=guild)
    note_deletes(channel.pk, BUCKET, 5_000)
    yield channel.pk
    Finding.objects.filter(kind=HEAVY_BUCKET, subject__startswith=f"{channel.pk}:").delete()


def measure(channel_id: int, *, minutes_ago: float = 0, source: str = "own read", **figures: int) -> None:
    measured_at = postgres_now() - dt.timedelta(minutes=minutes_ago)
    note_figures(channel_id, BUCKET, figures, source=source, measured_at=measured_at)


def check(channel_id: int) -> Finding | None:
    check_heavy_buckets(postgres_now())
    list_open = Finding.objects.filter(kind=HEAVY_BUCKET, subject=f"{channel_id}:{BUCKET}", closed_at=None)
    return list_open.first()


def test_a_bucket_below_every_threshold_opens_no_finding(channel_id: int) -> None:
    measure(channel_id, tombstones=999, bytes=49_000_000)
    assert check(channel_id) is None


def test_a_bucket_over_a_threshold_is_reported_once_with_its_source(channel_id: int) -> None:
    measure(channel_id, tombstones=1_200)
    first, again = check(channel_id), check(channel_id)
    assert first is not None
    assert again is not None
    assert first.pk == again.pk
    assert (first.severity, first.details) == (Severity.WARNING, {"tombstones": 1_200})
    assert "#general (Tidewalkers), " in first.summary
    assert "A full read scans 1,200 tombstones (full read, " in first.summary


def test_a_bucket_far_over_a_threshold_is_critical(channel_id: int) -> None:
    measure(channel_id, tombstones=60_000, bytes=120_000_000)
    found = check(channel_id)
    assert found is not None
    assert found.severity == Severity.CRITICAL
    assert "120 MB in one partition" in found.summary


def test_the_newer_measurement_counts_whatever_its_source(channel_id: int) -> None:
    measure(channel_id, minutes_ago=60, tombstones=60_000)
    assert check(channel_id) is not None
    measure(channel_id, minutes_ago=30, tombstones_seen_by_repair=2, source="top partitions")
    assert check(channel_id) is None


@pytest.mark.parametrize("job", ["probe", "measure", "verify"])
def test_a_measurement_on_request_updates_finding_and_table_before_its_run_ends(job: str, channel_id: int) -> None:
    ledger.ensure_row(channel_id, BUCKET)
    measure(channel_id, tombstones=60_000, tombstones_seen_by_repair=60_000)
    other = open_finding(HEAVY_BUCKET, f"{fresh_id()}:{BUCKET}", Problem(Severity.WARNING, "another channel's"))
    found = check(channel_id)
    assert found is not None
    # The checks have closed the other one too, since nothing was measured there.
    Finding.objects.filter(pk=other.pk).update(closed_at=None)
    run = JobRun.objects.create(job=job, subject=f"{channel_id}:{BUCKET}", due_at=postgres_now())
    done = work_on_run(run.pk)
    assert done is not None
    assert (done.state, done.error) == (RunState.DONE, "")
    found.refresh_from_db()
    assert found.closed_at is not None
    assert ChannelSummary.objects.get(channel_id=channel_id).tombstones == 0
    assert Finding.objects.open().filter(pk=other.pk).exists()
    close_finding(HEAVY_BUCKET, other.subject)


def test_it_is_checked_until_resolved_even_without_new_deletes(channel_id: int) -> None:
    measure(channel_id, tombstones=1_200)
    assert check(channel_id) is not None
    later = postgres_now() + dt.timedelta(days=10)
    check_heavy_buckets(later)
    assert Finding.objects.filter(kind=HEAVY_BUCKET, subject=f"{channel_id}:{BUCKET}", closed_at=None).exists()
    measure(channel_id, tombstones=12)
    check_heavy_buckets(later)
    assert not Finding.objects.filter(kind=HEAVY_BUCKET, subject=f"{channel_id}:{BUCKET}", closed_at=None).exists()


def test_a_day_over_a_limit_makes_the_channel_a_candidate() -> None:
    quiet = fresh_id()
    measure(quiet, tombstones=1_500)
    assert check(quiet) is None
    ChannelDay.objects.create(channel_id=quiet, day=postgres_now().date(), tombstones=1_500)
    found = check(quiet)
    assert found is not None
    assert found.summary.startswith(f"Channel {quiet}, ")
    found.delete()
    ChannelDay.objects.filter(channel_id=quiet).delete()


@pytest.mark.parametrize(
    ("known", "summary"),
    [
        ({"bytes": 61_000_000}, "61.0 MB in one partition"),
        ({"tombstones": 1_500}, "A full read scans 1,500 tombstones"),
    ],
)
def test_a_bucket_over_a_limit_long_ago_is_reported_as_its_page_colors_it(known: dict[str, int], summary: str) -> None:
    channel = Channel.objects.create(pk=fresh_id(), name="quiet")
    ledger.ensure_row(channel.pk, BUCKET)
    measure(channel.pk, minutes_ago=30 * 24 * 60, source="own read", **known)
    refresh_summaries([channel.pk])
    assert read_channel_health(None, channel.pk).find(BUCKET).severity == Severity.WARNING
    found = check(channel.pk)
    assert found is not None
    assert summary in found.summary
    close_finding(HEAVY_BUCKET, found.subject)


def health_of(channel_id: int) -> dict[int, int | None]:
    """Return the tombstones of each bucket as the channel's page shows them."""
    health = read_channel_health(None, channel_id)
    return {one.bucket: one.known.tombstones for one in health.buckets}


def test_a_bucket_listed_only_by_replicas_is_reported_until_a_later_read() -> None:
    channel = Channel.objects.create(pk=fresh_id(), name="listed")
    bucket = bucket_at(now_ms()) - 4
    ids = spread_ids(1_100, newest_ms=unix_ms(bucket_window(bucket)[0]) + DAY_MS)
    write_messages(channel.pk, ids)
    delete_rows(channel.pk, ids)
    # Like a repair started by an operator's own nodetool: Chatstore records nothing about it.
    measure_bucket(channel.pk, bucket)
    check_heavy_buckets(postgres_now())
    found = Finding.objects.get(kind=HEAVY_BUCKET, subject=f"{channel.pk}:{bucket}", closed_at=None)
    assert "1,100 tombstones (top partitions, " in found.summary
    # A figure has one source, and the bucket's page shows the same one.
    assert health_of(channel.pk)[bucket] == 1_100
    note_figures(channel.pk, bucket, {"tombstones": 2}, source="own read", measured_at=postgres_now())
    check_heavy_buckets(postgres_now())
    found.refresh_from_db()
    assert found.closed_at is not None
