"""Ninety days of measurements: one row per day, none for days without a measurement, none older."""

import datetime as dt

from chatstore.domain.runs import RunState
from chatstore.models import ChannelDay, JobRun
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.history import (
    KEEP_DAYS,
    Day,
    channel_days,
    delete_old_days,
    first_day,
    note_day,
    note_days,
    repairs_since,
    worst_days,
)
from chatstore.store import figures
from tests.chatstore.channels import fresh_id
from tests.chatstore.figures import note

TODAY = dt.date(1999, 6, 30)
"""Days that no other test uses."""


def test_a_day_has_the_maximum_over_all_buckets_once_one_of_them_was_measured() -> None:
    channel_id, now = fresh_id(), postgres_now()
    note(channel_id, 1, hours_ago=1, tombstones=70, bytes=5, live_rows=10)
    note(channel_id, 2, hours_ago=2, tombstones_seen_by_repair=90, live_rows=5)
    note(channel_id, 3, hours_ago=30, tombstones=50_000, bytes=80)
    note_day(channel_id, now=now, read_ms=2.5)
    assert channel_days(channel_id, today=now.date()) == [Day(now.date(), 50_000, 80, 2.5)]
    assert ChannelDay.objects.get(channel_id=channel_id).live_rows == 15


def test_a_day_without_a_measurement_has_no_value() -> None:
    channel_id, now = fresh_id(), postgres_now()
    note(channel_id, 1, hours_ago=30, tombstones=50_000, bytes=80)
    note_day(channel_id, now=now, read_ms=2.5)
    note_days({channel_id: figures.read_figures(channel_id).values()}, now=now)
    assert channel_days(channel_id, today=now.date()) == [Day(now.date(), None, None, 2.5)]


def test_unmeasured_figures_keep_the_value_of_the_day() -> None:
    channel_id, now = fresh_id(), postgres_now()
    note_day(channel_id, now=now, read_ms=2.5)
    assert channel_days(channel_id, today=now.date()) == [Day(now.date(), None, None, 2.5)]
    note(channel_id, 1, hours_ago=0, tombstones=4)
    note_day(channel_id, now=now, read_ms=None)
    assert channel_days(channel_id, today=now.date()) == [Day(now.date(), 4, None, 2.5)]


def test_each_day_shows_the_worst_channel_per_figure() -> None:
    one, other = fresh_id(), fresh_id()
    ChannelDay.objects.create(channel_id=one, day=TODAY, tombstones=5, read_ms=9.0)
    ChannelDay.objects.create(channel_id=other, day=TODAY, tombstones=700, bytes=3, read_ms=1.0)
    assert worst_days(today=TODAY)[-1] == Day(TODAY, 700, 3, 9.0)
    ChannelDay.objects.filter(channel_id__in=(one, other)).delete()


def test_a_week_is_its_last_seven_days() -> None:
    channel_id = fresh_id()
    days = [TODAY - dt.timedelta(days=ago) for ago in (7, 6, 0)]
    ChannelDay.objects.bulk_create(ChannelDay(channel_id=channel_id, day=day, tombstones=1) for day in days)
    assert [day.day for day in channel_days(channel_id, today=TODAY, days=7)] == days[1:]
    assert days[0] not in [day.day for day in worst_days(today=TODAY, days=7)]
    ChannelDay.objects.filter(channel_id=channel_id).delete()


def test_ninety_days_are_kept() -> None:
    channel_id = fresh_id()
    days = [TODAY - dt.timedelta(days=ago) for ago in (0, KEEP_DAYS - 1, KEEP_DAYS)]
    ChannelDay.objects.bulk_create(ChannelDay(channel_id=channel_id, day=day, tombstones=1) for day in days)
    shown = [first_day(TODAY), TODAY]
    assert [day.day for day in channel_days(channel_id, today=TODAY)] == shown
    delete_old_days(TODAY)
    kept = ChannelDay.objects.filter(channel_id=channel_id).order_by("day").values_list("day", flat=True)
    assert list(kept) == shown


def test_marks_are_full_repairs_and_repairs_of_the_channel() -> None:
    channel_id, began = fresh_id(), postgres_now()
    done = {"due_at": began, "started_at": began, "ended_at": began}
    everything = JobRun.objects.create(job="repair", state=RunState.DONE, **done)
    own = JobRun.objects.create(job="repair_bucket", subject=f"{channel_id}:3", state=RunState.DONE, **done)
    others = JobRun.objects.create(job="repair_bucket", subject=f"{fresh_id()}:3", state=RunState.DONE, **done)
    failed = JobRun.objects.create(job="repair", state=RunState.FAILED, **done)
    found = [run.pk for run in repairs_since(began, channel_id=channel_id)]
    assert {everything.pk, own.pk} <= set(found)
    assert not {others.pk, failed.pk} & set(found)
    assert own.pk not in [run.pk for run in repairs_since(began)]
    JobRun.objects.filter(pk__in=(everything.pk, own.pk, others.pk, failed.pk)).delete()
