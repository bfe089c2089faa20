"""A probe reads what readers read and records its cost; the nightly probe continues where it stopped."""

import datetime as dt

import pytest
from pytest_django import Settings

from chatstore.domain.buckets import bucket_at, bucket_ids, bucket_of
from chatstore.domain.errors import BadInput
from chatstore.domain.health import ChannelState
from chatstore.domain.live import EMPTY
from chatstore.domain.milliseconds import DAY_MS, MINUTE_MS
from chatstore.domain.runs import RunState
from chatstore.domain.snowflakes import first_id_at
from chatstore.models import BucketDeletes, Channel, ChannelDay, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.operations.health import probes
from chatstore.operations.health.channel_health import read_channel_health
from chatstore.operations.jobs.runs import Claim, RunStopped, claim_run, request_run, work_on_run
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import figures, ledger
from chatstore.store.figures import Figure
from chatstore.store.probing import BucketPage
from tests.chatstore.channels import delete_rows, fresh_id, now_ms, spread_ids, write_messages


def make_channel() -> int:
    channel_id = first_id_at(now_ms()) | (fresh_id() % (1 << 22))
    Channel.objects.create(pk=channel_id, name="room")
    return channel_id


def old_ids(count: int, *, buckets_ago: int = 10) -> list[int]:
    """Return ids of one sealed bucket, newest first."""
    first, last = bucket_ids(bucket_at(now_ms()) - buckets_ago)
    step = (last - first) // (count + 1)
    return [first + step * number for number in range(count, 0, -1)]


def noted(channel_id: int, bucket: int) -> dict[str, Figure]:
    return figures.read_figures(channel_id).get(bucket, {})


def claim_probe(subject: str = "") -> Claim:
    run = JobRun.objects.create(job="probe", subject=subject, due_at=postgres_now())
    claim = claim_run(run.pk)
    assert claim is not None
    return claim


def finish(claim: Claim) -> None:
    """Mark the run as ended, so that no other worker on these servers takes it."""
    JobRun.objects.filter(pk=claim.run.pk).update(state=RunState.DONE, token=None, lease_until=None)


def test_a_bucket_probe_counts_live_rows_and_tombstones() -> None:
    channel_id, ids = make_channel(), old_ids(300)
    write_messages(channel_id, ids)
    delete_rows(channel_id, ids[:120])
    bucket = bucket_of(ids[0])
    result = probes.probe_bucket(channel_id, bucket, whole=True)
    found = noted(channel_id, bucket)
    assert (found["live_rows"].value, found["tombstones"].value) == (180, 120)
    # The newest page is beyond all of them.
    assert found["page_tombstones"].value == 120
    assert found["page_us"].value > 0
    assert {figure.source for figure in found.values()} == {"probe"}
    assert (result["messages"], result["tombstones"]) == (180, 120)


def test_a_newest_page_probe_scans_no_more_than_readers_do() -> None:
    channel_id, ids = make_channel(), old_ids(300)
    write_messages(channel_id, ids)
    delete_rows(channel_id, ids[200:])
    probes.probe_channel(channel_id, now=postgres_now())
    page = read_channel_health(None, channel_id).newest_page
    assert page["newest_page_tombstones"].value == 0
    assert page["newest_page_statements"].value >= 1
    assert page["newest_page_us"].value > 0
    day = ChannelDay.objects.get(channel_id=channel_id)
    assert day.read_ms is not None
    assert round(day.read_ms * 1000) == page["newest_page_us"].value


def test_an_empty_bucket_is_not_probed_for_its_page() -> None:
    channel_id = make_channel()
    ledger.ensure_row(channel_id, 300)
    ledger.set_live(channel_id, 300, EMPTY, read_began_us=postgres_now_us())
    assert probes.probe_bucket(channel_id, 300, whole=False) == {}
    assert noted(channel_id, 300) == {}


def test_the_page_of_an_empty_channel_costs_no_read() -> None:
    channel_id = make_channel()
    result = probes.probe_channel(channel_id, now=postgres_now())
    assert result["tombstones"] == 0


def test_a_bucket_before_2015_is_probed_like_any_other() -> None:
    channel_id = make_channel()
    ids = spread_ids(5, newest_ms=now_ms() - 4_400 * DAY_MS)
    write_messages(channel_id, ids)
    bucket = bucket_of(ids[0])
    assert bucket < 0
    probes.probe_bucket(channel_id, bucket, whole=True)
    assert noted(channel_id, bucket)["live_rows"].value == sum(bucket_of(one) == bucket for one in ids)


def test_the_job_probes_the_subject_of_its_run(otto: User) -> None:
    channel_id, ids = make_channel(), old_ids(4)
    write_messages(channel_id, ids)
    of_bucket = work_on_run(request_run("probe", actor=otto, subject=f"{channel_id}:{bucket_of(ids[0])}").pk)
    of_channel = work_on_run(request_run("probe", actor=otto, subject=str(channel_id)).pk)
    assert of_bucket is not None
    assert (of_bucket.state, of_bucket.result["messages"]) == (RunState.DONE, 4)
    assert of_channel is not None
    assert (of_channel.state, of_channel.result["tombstones"]) == (RunState.DONE, 0)


@pytest.mark.parametrize("subject", ["general", "5:six", "9223372036854775808", "5"])
def test_a_subject_that_names_no_bucket_is_refused(subject: str) -> None:
    with pytest.raises(BadInput):
        probes.parse_bucket_subject(subject)


# --- Nightly runs


def write_now(channel_id: int) -> None:
    """Write a message into the newest bucket."""
    write_messages(channel_id, [first_id_at(now_ms() - MINUTE_MS)])


def test_a_nightly_run_probes_channels_with_writes_or_deletes_and_not_those_that_never_had_a_message() -> None:
    quiet, busy, purged = make_channel(), make_channel(), make_channel()
    write_now(busy)
    ids = old_ids(3)
    write_messages(purged, ids)
    note_deletes(purged, bucket_of(ids[0]), 1)
    claim = claim_probe()
    result = probes.probe_channels(claim, [quiet, busy, purged])
    finish(claim)
    assert result == {"channels": 2, "buckets with deletes": 1, "failed": 0, "left for the next run": 0}
    assert not ChannelDay.objects.filter(channel_id=quiet).exists()
    assert "page_us" in noted(purged, bucket_of(ids[0]))


def test_a_quiet_channel_is_probed_once_after_the_active_ones(settings: Settings) -> None:
    quiet, busy = make_channel(), make_channel()
    write_messages(quiet, old_ids(3))
    write_now(busy)
    claim = claim_probe()
    turns = list(probes._in_turn([quiet, busy], now=postgres_now()))
    assert turns == [(0, (busy, False)), (1, (quiet, False))]
    assert probes.probe_channels(claim, [quiet])["channels"] == 1
    assert read_channel_health(None, quiet).state is not ChannelState.UNKNOWN
    assert probes.probe_channels(claim, [quiet])["channels"] == 0
    finish(claim)


def test_a_nightly_run_counts_the_tombstones_of_many_deletes() -> None:
    channel_id, ids = make_channel(), old_ids(200)
    write_messages(channel_id, ids)
    delete_rows(channel_id, ids[:150])
    note_deletes(channel_id, bucket_of(ids[0]), 150)
    claim = claim_probe()
    probes.probe_channels(claim, [channel_id])
    finish(claim)
    assert noted(channel_id, bucket_of(ids[0]))["tombstones"].value == 150
    assert ChannelDay.objects.get(channel_id=channel_id).tombstones == 150


def test_only_unfinished_channels_are_due_in_the_next_run(settings: Settings) -> None:
    first, second = make_channel(), make_channel()
    write_now(first)
    write_now(second)
    claim = claim_probe()
    probes.probe_channels(claim, [first])
    settings.PROBE_SECONDS = -1
    assert probes.probe_channels(claim, [second])["left for the next run"] == 1
    finish(claim)
    due = probes.due_channels(postgres_now())
    assert second in due
    assert first not in due
    assert first in probes.due_channels(postgres_now() + dt.timedelta(days=1))


def test_channels_with_deletes_come_before_all_others() -> None:
    never_probed, purged = make_channel(), make_channel()
    note_deletes(purged, 300, 5)
    due = probes.due_channels(postgres_now())
    assert due.index(purged) < due.index(never_probed)


def test_a_run_that_is_stopped_stops_between_two_channels(otto: User) -> None:
    channel_id = make_channel()
    write_now(channel_id)
    claim = claim_probe()
    JobRun.objects.filter(pk=claim.run.pk).update(stop_requested_by=otto)
    with pytest.raises(RunStopped):
        probes.probe_channels(claim, [channel_id])
    finish(claim)
    assert not ChannelDay.objects.filter(channel_id=channel_id).exists()


# --- Slower than before


def page_of(microseconds: int, *, hours_ago: float = 0) -> Figure:
    return Figure(microseconds, "probe", postgres_now() - dt.timedelta(hours=hours_ago))


def merges_of(channel_id: int, bucket: int) -> int:
    return JobRun.objects.filter(job="merge", subject=f"{channel_id}:{bucket}").count()


@pytest.fixture
def deleted_from() -> int:
    """Return a channel whose bucket 300 had deletes an hour ago."""
    channel_id = make_channel()
    at = postgres_now() - dt.timedelta(hours=1)
    BucketDeletes.objects.create(channel_id=channel_id, bucket=300, hour=at, deletes=9, last_at=at)
    return channel_id


@pytest.fixture(autouse=True)
def _leave_no_merge_behind() -> object:
    """Remove queued compactions, so that other tests' servers do not compact buckets that do not exist."""
    yield
    JobRun.objects.filter(job="merge", state=RunState.QUEUED).update(state=RunState.STOPPED)


def test_a_page_three_times_slower_than_before_its_deletes_is_compacted_once(deleted_from: int) -> None:
    before = {"page_us": page_of(8_000, hours_ago=20)}
    probes.check_page_slowdown(deleted_from, 300, page_of(25_000), before)
    assert merges_of(deleted_from, 300) == 1
    probes.check_page_slowdown(deleted_from, 300, page_of(25_000), noted(deleted_from, 300))
    assert merges_of(deleted_from, 300) == 1
    (run,) = JobRun.objects.filter(job="merge", subject=f"{deleted_from}:300")
    assert run.requested_by is None


def test_a_page_that_is_not_slower_is_not_compacted(deleted_from: int) -> None:
    before = {"page_us": page_of(8_000, hours_ago=20)}
    probes.check_page_slowdown(deleted_from, 300, page_of(23_000), before)
    assert merges_of(deleted_from, 300) == 0


def test_an_unmeasured_page_is_compared_with_the_channel_s_page_of_the_day_before(deleted_from: int) -> None:
    probes.check_page_slowdown(deleted_from, 300, page_of(90_000), {})
    assert merges_of(deleted_from, 300) == 0
    yesterday = postgres_now().date() - dt.timedelta(days=1)
    ChannelDay.objects.create(channel_id=deleted_from, day=yesterday - dt.timedelta(days=1), read_ms=4.0)
    probes.check_page_slowdown(deleted_from, 300, page_of(90_000), {})
    assert merges_of(deleted_from, 300) == 1


def test_a_page_that_slowed_down_without_deletes_is_neither_compacted_nor_a_baseline() -> None:
    channel_id = make_channel()
    probes.check_page_slowdown(channel_id, 300, page_of(5_000, hours_ago=30), {})
    assert noted(channel_id, 300)["page_us_before"].value == 5_000
    probes.check_page_slowdown(channel_id, 300, page_of(90_000), noted(channel_id, 300))
    assert merges_of(channel_id, 300) == 0
    assert noted(channel_id, 300)["page_us_before"].value == 5_000


def test_an_aborted_read_is_recorded_with_its_minimum_of_tombstones() -> None:
    channel_id = make_channel()
    ledger.ensure_row(channel_id, 300)
    aborted = BucketPage(0, None, None, postgres_now())
    probes.note_page(channel_id, 300, aborted)
    found = read_channel_health(None, channel_id).find(300)
    assert found.known.tombstones == probes.TOMBSTONE_FAILURE_THRESHOLD
    assert found.figures["tombstones"].source == "aborted read"
    assert found.page_us is None


def test_channels_that_were_just_filled_are_probed_again() -> None:
    probed, never = make_channel(), make_channel()
    ChannelDay.objects.create(channel_id=probed, day=postgres_now().date(), read_ms=287.0)
    requested = JobRun.objects.filter(job="probe", state=RunState.QUEUED, subject__in=("", str(probed), str(never)))
    requested.delete()
    probes.request_probes([probed, never])
    subjects = sorted(requested.values_list("subject", flat=True))
    requested.delete()
    assert subjects == ["", str(probed)]
