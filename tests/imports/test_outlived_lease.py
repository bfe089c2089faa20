"""Nothing that a slow or suspended import sends too late restores a deleted message."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.live import UNKNOWN
from chatstore.models import ChannelLock
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_owner, release_channel
from chatstore.operations.coordination.clock import stamp_now_us
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.operations.importing import completion
from chatstore.operations.importing.loads import finish_load, start_load
from chatstore.store import ledger
from chatstore.store.messages import read_message
from tests.imports.exports import (
    MAY,
    OTHER_JOB,
    VICTOR,
    decide,
    fresh_channel,
    ids_from,
    make_raw,
    read,
    run_import,
    take_over,
    taken_over,
    write_export,
)
from tests.moderation.channels import choose, purge_now
from tests.waiting import wait_until


def there(channel_id: int, ids: list[int]) -> list[int]:
    """Return the ids that are messages with an author."""
    return [one for one in ids if read_message(channel_id, one) is not None]


@pytest.mark.parametrize("count", [1, 20])
def test_a_late_overwrite_restores_no_purged_message(mona: User, tmp_path: Path, count: int) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 20)
    run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids]))
    edited = [
        dataclasses.replace(read(channel_id, i), content="edited", edited_at=dt.datetime(2024, 6, 1, tzinfo=dt.UTC))
        for i in ids
    ]
    decision = decide(*edited)
    assert sum(map(len, decision.changed.values())) == 20
    purge_now(mona, choose(channel_id, message_ids=tuple(ids[:count])))
    finish_load(start_load(decision))
    assert there(channel_id, ids) == ids[count:]
    assert all(read(channel_id, i).content == "edited" for i in ids[count:])


def test_a_slow_import_keeps_its_channel_lock(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)

    def take_three_leases(channel: int, bucket: int) -> Collection[int]:
        first = ChannelLock.objects.get(channel_id=channel).lease_until
        assert first is not None
        wait_until(
            lambda: ChannelLock.objects.filter(
                channel_id=channel, lease_until__gt=first + dt.timedelta(seconds=1.5)
            ).exists(),
            seconds=30,
        )
        return ()

    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])
    summary = run_import(path, deleted_ids=lambda channels: take_three_leases, lease_seconds=0.5)
    assert (summary.written, summary.failed_files) == (3, [])
    assert lock_owner(channel_id) is None


def test_nothing_is_sent_after_the_lock_is_lost(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])
    with taken_over(channel_id) as deleted_ids:
        summary = run_import(path, deleted_ids=deleted_ids)
    assert "taken over" in summary.failed_files[0].reason
    assert there(channel_id, ids) == []


def test_withdrawn_messages_are_not_kept_after_the_lock_is_lost(tmp_path: Path) -> None:
    """The first load is in progress when the second one finds the channel taken over."""
    channel_id, ids = fresh_channel(), ids_from(MAY, 5_001, apart_seconds=1)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])
    calls = iter(range(2))

    def disturb(channel: int, bucket: int) -> Collection[int]:
        if next(calls, 0) == 0:
            withdraw_message(channel, ids[7], actor=VICTOR)
        else:
            take_over(channel)
        return ()

    try:
        summary = run_import(path, deleted_ids=lambda channels: disturb)
    finally:
        release_channel(channel_id, job=OTHER_JOB)
    assert "taken over" in summary.failed_files[0].reason
    assert read_message(channel_id, ids[7]) is None
    assert read_message(channel_id, ids[8]) is not None


def test_an_import_that_lost_its_lock_before_it_counts_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])

    def outlive_lease() -> int:
        take_over(channel_id)
        return stamp_now_us()

    monkeypatch.setattr(completion, "stamp_now_us", outlive_lease)
    try:
        summary = run_import(path)
    finally:
        release_channel(channel_id, job=OTHER_JOB)
    assert "taken over" in summary.failed_files[0].reason
    assert ledger.read_live(channel_id, bucket_of(ids[0])) == UNKNOWN


_CHILD = """
import sys, django
django.setup()
from pathlib import Path
from chatstore.operations.importing.discord import ImportChoices, import_discord
choices = ImportChoices(deleted_ids=lambda channels: lambda c, b: (), lease_seconds=2.0)
summary = import_discord([Path(sys.argv[1])], choices=choices)
print([failed.reason for failed in summary.failed_files])
"""


@pytest.mark.slow
def test_a_suspended_import_restores_nothing(mona: User, tmp_path: Path) -> None:
    """Suspend the process during an overwrite, until its lease has expired and a purge deleted the rest."""
    # Ids younger than an hour are deleted by row, each at its own write time.
    posted = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=40)
    channel_id, ids = fresh_channel(), ids_from(posted, 4_000, apart_seconds=0.5)
    last = ids[-400:]
    run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids]))
    raws = [make_raw(i, content="edited " * 100, timestampEdited=dt.datetime.now(dt.UTC).isoformat()) for i in ids]
    path = write_export(tmp_path / "b.json", channel_id, raws)
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-c", _CHILD, str(path)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            wait_until(lambda: read(channel_id, ids[0]).edited_at is not None)
            child.send_signal(signal.SIGSTOP)
            assert read(channel_id, ids[-1]).edited_at is None, "it was to be stopped while it overwrote"
            wait_until(lambda: lock_owner(channel_id) is None)
            purge_now(mona, choose(channel_id, message_ids=tuple(last)))
            child.send_signal(signal.SIGCONT)
            output, errors = child.communicate(timeout=120)
        finally:
            child.kill()
    assert "taken over" in output, errors
    assert there(channel_id, last) == []
