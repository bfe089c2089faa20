"""Stored sums are those of the steps and of the manifest, and are read instead of them."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.planner import DeleteStrategy
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import ManifestBucket, ManifestSummary, Purge, Step
from moderation.operations.preview.bucket_strip import MAX_FULL_CHANNELS, PurgeMap
from moderation.operations.preview.exclusions import exclude_messages
from moderation.operations.preview.manifest_summary import (
    BUCKETS_AT_ONCE,
    compute_summary,
    renew_summary,
    store_summary,
    summary_of,
)
from moderation.operations.purging.controls import cancel_purge
from moderation.operations.steps.deleted_ids import count_deleted
from moderation.operations.steps.totals import count_still_deleted, totals_of
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    choose,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.moderation.many_steps import make_large_purge
from tests.moderation.stored_sums import fill_sums, store_sums
from tests.plans import explain, rows_read


def stored(purge: Purge) -> tuple[list[object], ...]:
    purge.refresh_from_db()
    (undo,) = purge.undos.all()
    return (
        list(purge.periods.order_by("bucket").values_list("bucket", "deleted", "already_gone", "undone")),
        list(purge.days.order_by("day").values_list("day", "deleted", "last_at")),
        [purge.quarantined_at, undo.requested, undo.restored, undo.withdrawn, undo.already_live],
    )


def test_sums_of_a_purge_and_its_undo_are_those_of_its_steps(mona: User) -> None:
    channel = make_channel()
    for ago in (3, 4):
        ids = old_ids(40, buckets_ago=ago)
        write(channel, ids[:30])
        write(channel, ids[30:], author=WILMA)
    purge = purge_now(mona, everything(channel))
    request_undo(purge.pk, moderator=mona, part=UndoPart(author_ids=(WILMA,)), reason="Appeal accepted")
    purge = run_to_end(purge)
    sums = stored(purge)
    assert [row[1:] for row in sums[0]] == [(40, 0, 10), (40, 0, 10)]  # type: ignore[index]
    assert count_still_deleted(purge) == sum(one.left for one in count_deleted(purge.steps.all()).values()) == 60
    store_sums()
    assert stored(purge) == sums
    fill_sums()
    assert stored(purge) == sums


def test_the_summary_of_a_preview_follows_an_exclusion(mona: User) -> None:
    channels, ids = [make_channel() for _ in range(2)], old_ids(60)
    write(channels[0], ids[:40])
    write(channels[1], ids[40:])
    author = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))
    purge = preview(mona, author)
    before = summary_of(purge)
    assert [(one.channel_id, one.matched, one.kept) for one in before.channels] == [
        (channels[0].pk, 40, 0),
        (channels[1].pk, 20, 0),
    ]
    assert (before.count, before.authors, before.author_count) == (60, [(VICTOR, 60)], 1)
    less = exclude_messages(purge.pk, ids[:3], moderator=mona, manifest_hash=bytes(purge.manifest_hash or b""))
    after = summary_of(less)
    assert (after.count, after.channels[0].matched, after.channels[0].kept, after.first_id) == (57, 37, 3, ids[3])
    ManifestSummary.objects.filter(purge=less).delete()
    assert summary_of(less) == after


def test_the_authors_of_many_buckets_are_added_up_in_parts(mona: User) -> None:
    purge = make_large_purge(mona, counted=0, pending=2 * BUCKETS_AT_ONCE + 1, state=PurgeState.READY, author=7)
    summary = summary_of(purge)
    assert (summary.authors, summary.author_count) == ([(7, 2 * BUCKETS_AT_ONCE + 1)], 1)
    assert summary.strategies == {DeleteStrategy.ROWS: (summary.bucket_count, summary.count)}
    assert summary.bucket_count == summary.channel_count == summary.max_tombstones * (2 * BUCKETS_AT_ONCE + 1)


def test_a_manifest_is_not_summed_up_while_the_purge_is_locked(mona: User) -> None:
    channel, ids = make_channel(), old_ids(10)
    write(channel, ids)
    with CaptureQueriesContext(connection) as captured:
        purge = preview(mona, choose(channel.pk, author_ids=(VICTOR,)))
        exclude_messages(purge.pk, ids[:3], moderator=mona, manifest_hash=bytes(purge.manifest_hash or b""))
    statements = [query["sql"] for query in captured]
    sums = [n for n, sql in enumerate(statements) if "jsonb_each_text" in sql or "jsonb_array_elements" in sql]
    begins = [n for n, sql in enumerate(statements) if sql == "BEGIN"]
    ends = [n for n, sql in enumerate(statements) if sql == "COMMIT"]
    assert len(sums) == 2 * 2
    assert not any(begin < n < end for n in sums for begin, end in zip(begins, ends, strict=True))


def test_a_summary_is_not_stored_for_a_manifest_that_was_changed_again(mona: User) -> None:
    channel, ids = make_channel(), old_ids(10)
    write(channel, ids)
    purge = preview(mona, choose(channel.pk, author_ids=(VICTOR,)))
    ManifestSummary.objects.filter(purge=purge).delete()
    purge.manifest_hash = b"another hash"
    renew_summary(purge)
    assert not ManifestSummary.objects.filter(purge=purge).exists()


def test_the_strip_of_many_channels_is_drawn_from_sums(mona: User) -> None:
    author, channels = VICTOR + make_channel().pk % 1_000_000, [make_channel() for _ in range(MAX_FULL_CHANNELS + 1)]
    ids = old_ids(4)
    for channel in channels:
        write(channel, ids[:2], author=author)
        write(channel, ids[2:], author=WILMA)
    purge = purge_now(mona, Selection(where=Author((author,))))
    (bar,) = (bar for bar in drawn(purge) if bar[1])
    assert bar == (4 * len(channels), 2 * len(channels), True, 0)
    request_undo(purge.pk, moderator=mona, part=UndoPart(channel_ids=(channels[0].pk,)), reason="Appeal accepted")
    (bar,) = (bar for bar in drawn(run_to_end(purge)) if bar[1])
    assert bar == (4 * len(channels), 2 * len(channels) - 2, True, 2)


@pytest.mark.parametrize("number", [2, MAX_FULL_CHANNELS + 1])
def test_what_a_cancelled_purge_left_is_drawn_as_kept(mona: User, number: int) -> None:
    author, channels = VICTOR + make_channel().pk % 1_000_000, [make_channel() for _ in range(number)]
    for channel in channels:
        write(channel, old_ids(4), author=author)
    purge = confirm(mona, preview(mona, Selection(where=Author((author,)))))
    assert (4 * number, 4 * number, False, 0) in drawn(purge)
    run_to_end(cancel_purge(purge.pk, moderator=mona))
    purge.refresh_from_db()
    assert purge.state == PurgeState.CANCELLED
    assert (4 * number, 0, False, 0) in drawn(purge)


def drawn(purge: Purge) -> list[tuple[int | None, int, bool, int]]:
    summary = summary_of(purge)
    strip = PurgeMap(purge, summary, [one.channel_id for one in summary.channels]).draw()
    return [(bar.count, bar.highlighted, bar.kind == "deleted", bar.restored) for bar in strip.bars]


def test_the_page_of_a_large_purge_reads_few_of_its_steps_and_buckets(mona: User, client: Client) -> None:
    purge = make_large_purge(mona, counted=3_000, pending=20)
    store_sums()
    store_summary(purge.pk, compute_summary(purge.pk))
    client.force_login(mona)
    assert totals_of(purge).left == purge.manifest
    read = explain(lambda: client.get(f"/purges/{purge.pk}/"))
    assert rows_read(read, Step._meta.db_table) < 200
    assert rows_read(read, ManifestBucket._meta.db_table) < 500
