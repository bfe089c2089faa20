"""The raid: 30,000 messages of the last twenty minutes are deleted while other users post and read."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pytest_django import Settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.store import messages, scans
from chatstore.store.reading.reader import trace_newest_page
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState, StepKind
from moderation.models import Purge, Step
from moderation.operations.preview.scan import scan_to_end
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.steps.totals import totals_of
from tests.moderation.channels import (
    WILMA,
    buckets_of,
    by_victor,
    confirm,
    make_channel,
    preview,
    recent_ids,
    run_to_end,
    write,
)
from tests.moderation.incident.processes import (
    ChatTraffic,
    enqueue_workers,
    pause_purges_of_other_tests,
    running_worker,
    wait_until_done,
)
from tests.moderation.incident.reading import PageReader
from tests.waiting import wait_until, wait_until_nothing_is_merged

pytestmark = pytest.mark.slow

RAID = 30_000
KEPT_MESSAGES = 30_000
"""Messages of other users from the same twenty minutes, between those of the raid."""

POSTS_PER_SECOND = 200
DELETED_WITHIN_SECONDS = 10
MAX_TOMBSTONES = 500
PAGES_AROUND = 8


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[None]:
    pause_purges_of_other_tests()
    with running_worker(tmp_path):
        yield


def contents(channel: Channel, buckets: list[int]) -> dict[int, str]:
    columns = ("message_id", "content")
    pages = (page for bucket in buckets for page in messages.iterate_rows(channel.id, bucket, columns=columns))
    return {message_id: content for page in pages for message_id, content in page}


def tombstones_in(channel: Channel, bucket: int) -> int:
    """Count a bucket's tombstones, again if a replica did not answer: disks may stall."""
    counted: list[int] = []

    def is_counted() -> bool:
        with suppress(StoreUnavailable):
            pages = scans.read_all_ids(channel.id, bucket)
            deque(pages, maxlen=0)
            counted.append(pages.count_tombstones())
        return bool(counted)

    wait_until(is_counted)
    return counted[0]


def preview_as_workers_do(moderator: User, selection: Selection) -> Purge:
    """Draft and scan a purge. A scan in which a replica did not answer is continued, as by workers: disks may stall."""
    purge = draft_purge(moderator=moderator, selection=selection)

    def is_scanned() -> bool:
        with suppress(StoreUnavailable):
            scan_to_end(purge.pk)
        purge.refresh_from_db()
        return purge.state != PurgeState.SCANNING

    wait_until(is_scanned)
    return purge


def rewrite_as_workers_do(purge: Purge) -> None:
    """Run a rewrite. One that waits because a replica did not answer is continued, as by workers: disks may stall."""
    wait_until(lambda: run_to_end(purge).state == PurgeState.DONE)


def warm_up(moderator: User) -> None:
    """Purge a smaller raid without measuring it, like the bench's warm-up round.

    Fresh nodes spend half of both cores on JIT compilation, and a fresh worker prepares its statements.
    """
    channel = make_channel()
    write(channel, recent_ids(RAID // 2, minutes_ago=20, apart_ms=20))
    purge = confirm(moderator, preview(moderator, by_victor(channel)))
    enqueue_workers(purge.id)
    wait_until_done(purge.id)


@pytest.mark.alone
def test_a_raid_is_deleted_within_ten_seconds_and_readers_are_not_disturbed(
    mona: User, channel: Channel, worker: None, settings: Settings
) -> None:
    # As in production: the suite's own pages are never cut short.
    settings.PAGE_DEADLINE_SECONDS = 1.0
    warm_up(mona)
    ids = recent_ids(RAID + KEPT_MESSAGES, minutes_ago=20, apart_ms=20)
    raid, kept = ids[::2], dict.fromkeys(ids[1::2], "")
    write(channel, raid)
    write(channel, kept, author=WILMA, content="good morning")
    wait_until_nothing_is_merged()
    kept.update({message_id: f"good morning {message_id}" for message_id in kept})
    traffic = ChatTraffic(channel.id, author_id=WILMA, rate=POSTS_PER_SECOND)
    around = [*raid[RAID // PAGES_AROUND :: RAID // PAGES_AROUND], raid[-1]]
    reader = PageReader(mona, channel.id, around=around, kept=(kept, traffic.stored))
    try:
        wait_until(lambda: len(traffic.stored) > POSTS_PER_SECOND)
        purge = preview_as_workers_do(mona, by_victor(channel))
        assert purge.manifest == RAID
        reader.read_pages(1)
        before = len(traffic.stored)

        confirm(mona, purge)
        confirmed = time.monotonic()
        enqueue_workers(purge.id)
        wait_until_done(purge.id)
        reader.read_pages(2)
        posted_meanwhile = len(traffic.stored) - before
        lasted = time.monotonic() - confirmed

        shown = [page for page in reader.pages if not set(raid).isdisjoint(page.ids)]
        assert shown
        gone_after = max(page.ended for page in shown) - confirmed
        assert gone_after < DELETED_WITHIN_SECONDS
        # Counting and verification may take longer; users only see pages.
        clean = next(page for page in reader.pages if page.began > confirmed + gone_after)
        assert clean.began - confirmed < DELETED_WITHIN_SECONDS
        assert totals_of(purge).deleted == RAID
        assert posted_meanwhile > lasted * POSTS_PER_SECOND / 2

        # As if seventy minutes had passed: users keep posting and reading during the rewrite.
        buckets = buckets_of(ids)
        assert max(tombstones_in(channel, bucket) for bucket in buckets) > MAX_TOMBSTONES
        for rewrite in Step.objects.filter(channel_id=channel.id, kind=StepKind.REWRITE):
            Step.objects.filter(purge_id=rewrite.purge_id).update(due_at=None)
            rewrite_as_workers_do(rewrite.purge)
        assert max(tombstones_in(channel, bucket) for bucket in buckets) <= MAX_TOMBSTONES
        assert trace_newest_page(channel.id).tombstones <= MAX_TOMBSTONES
        reader.read_pages(1)
    finally:
        traffic.end()
        reader.end()
    assert [page for page in reader.pages if not page.is_complete] == []
    assert contents(channel, buckets_of([*ids, *traffic.stored])) == kept | traffic.stored
