"""A worker needs little memory for any purge: it keeps only ids, and packs the survivors to rewrite."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.planner import DeleteStrategy
from moderation.models import Step
from tests.moderation.channels import VICTOR, WILMA, make_channel, old_ids, write

pytestmark = pytest.mark.slow

MAX_MIB = 400

POLL_SECONDS = 0.02

BIG, MANY, EACH = 200_000, 50, 400
"""Messages of the one big bucket; buckets of the long channel, and messages in each of them."""


def test_a_worker_stays_under_400_mib_for_a_purge_that_keeps_every_second_message_of_a_big_bucket(mona: User) -> None:
    channel, ids = make_channel(), old_ids(BIG)
    for author, its_ids in ((VICTOR, ids[::2]), (WILMA, ids[1::2])):
        write(
            channel, its_ids, author=author, content="about as long as people write: eighty characters with its number"
        )
    assert peak_mib(channel, mona, f"--author={VICTOR}") < MAX_MIB
    assert Step.objects.get(channel_id=channel.id).strategy == DeleteStrategy.REWRITE


def test_a_worker_stays_under_400_mib_for_a_purge_of_many_buckets(mona: User) -> None:
    channel = make_channel()
    for ago in range(1, MANY + 1):
        write(channel, old_ids(EACH, buckets_ago=ago), content="x" * 2_000)
    assert peak_mib(channel, mona, "--everything") < MAX_MIB


def peak_mib(channel: Channel, moderator: User, what: str) -> float:
    """Return the peak memory of a process that scanned, previewed and purged a part of the channel."""
    command = ("purge", f"--channel={channel.id}", what, "--reason=a test", f"--as={moderator.username}")
    peak = 0.0
    with subprocess.Popen(
        [sys.executable, settings.BASE_DIR / "manage.py", *command, "--yes", "--json"], stdout=subprocess.DEVNULL
    ) as worker:
        while worker.poll() is None:
            peak = max(peak, read_peak_mib(worker.pid))
            time.sleep(POLL_SECONDS)
    assert worker.returncode == 0
    return peak


def read_peak_mib(pid: int) -> float:
    """Return VmHWM, which only grows; 0 if the process has just ended.

    `ru_maxrss` would start with the peak of the parent process.
    """
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines.get("VmHWM", "0 kB").split()[0]) / 1_024
