"""A scan reads what it must and nothing else: many small buckets at a time, few selected messages alone."""

from __future__ import annotations

import secrets

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.ledger.refresh import refresh_bucket
from chatstore.store import figures
from moderation.domain.filters import Author
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import ManifestBucket, Purge, Step
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.preview.bucket_strip import PurgeMap
from moderation.operations.preview.manifest_summary import summary_of
from moderation.operations.preview.scan import FIRST_BUCKETS, scan_purge
from moderation.operations.purging.lifecycle import draft_purge
from tests.chatstore.channels import delete_rows
from tests.moderation.channels import VICTOR, WILMA, choose, make_channel, old_ids, preview, recent_ids, write


def frozen_ids(purge: Purge) -> list[int]:
    steps = Step.objects.filter(purge=purge).order_by("ordinal")
    return [message_id for step in steps for message_id in unpack_ids(step.ids)]


@pytest.mark.slow
def test_many_small_buckets_are_frozen_in_order_whatever_is_read_first(mona: User) -> None:
    author = secrets.randbits(60)
    channels = sorted((make_channel() for _ in range(6)), key=lambda channel: channel.pk)
    expected = []
    for channel in channels:
        for ago in range(60, 0, -1):
            ids = old_ids(7, buckets_ago=ago)
            write(channel, ids[:3], author=author)
            write(channel, ids[3:], author=WILMA)
            expected.append((channel.pk, bucket_of(ids[0]), ids[:3]))
    purge = preview(mona, Selection(where=Author((author,))))
    assert (purge.state, purge.manifest, purge.scanned) == (PurgeState.READY, 6 * 60 * 3, 6 * 60 * 7)
    steps = Step.objects.filter(purge=purge).order_by("ordinal")
    assert [step.ordinal for step in steps] == list(range(1, 361))
    assert [(step.channel_id, step.bucket, unpack_ids(step.ids)) for step in steps] == expected
    assert set(ManifestBucket.objects.filter(purge=purge).values_list("survivors", flat=True)) == {4}


def test_the_first_buckets_are_stored_before_the_others_are_read(mona: User) -> None:
    channel = make_channel()
    for ago in range(40, 0, -1):
        write(channel, old_ids(2, buckets_ago=ago))
    purge = draft_purge(moderator=mona, selection=choose(channel.pk, author_ids=(VICTOR,)))
    scan_purge(purge.pk, ends_turn=lambda: True)
    purge.refresh_from_db()
    # On a slow machine half a second ends before.
    assert 0 < purge.manifest <= 2 * FIRST_BUCKETS


def test_an_author_in_named_channels_is_read_only_where_they_posted(mona: User) -> None:
    channel, author = make_channel(), secrets.randbits(60)
    theirs, others = old_ids(20, buckets_ago=4), old_ids(50, buckets_ago=5)
    write(channel, theirs, author=author)
    write(channel, others, author=WILMA)
    purge = preview(mona, choose(channel.pk, author_ids=(author,)))
    assert (purge.manifest, purge.scanned) == (20, 20)


def test_selected_messages_are_read_alone(mona: User) -> None:
    channel, old, new = make_channel(), old_ids(300), recent_ids(300)
    write(channel, [*old, *new])
    wanted = [*old[10:13], *new[5:9]]
    # The first read counts the tombstones of both buckets.
    assert preview(mona, choose(channel.pk, message_ids=wanted)).scanned == 600
    purge = preview(mona, choose(channel.pk, message_ids=wanted))
    assert (purge.state, purge.manifest, purge.scanned) == (PurgeState.READY, 7, 7)
    assert frozen_ids(purge) == wanted


def test_what_is_kept_beside_selected_messages_is_counted_by_the_ledger_or_unknown(mona: User) -> None:
    channel, old, new = make_channel(), old_ids(300), recent_ids(300)
    write(channel, [*old, *new])
    lock_channel(channel.pk, job="test")
    refresh_bucket(channel.pk, bucket_of(old[0]), job="test")
    release_channel(channel.pk, job="test")
    preview(mona, choose(channel.pk, message_ids=[*old[:2], *new[:2]]))
    purge = preview(mona, choose(channel.pk, message_ids=[*old[:2], *new[:2]]))
    kept = dict(ManifestBucket.objects.filter(purge=purge).values_list("bucket", "survivors"))
    assert kept == {bucket_of(old[0]): 298, bucket_of(new[0]): None}
    bars = {
        bar.bucket: (bar.count, bar.highlighted) for bar in PurgeMap(purge, summary_of(purge), [channel.pk]).draw().bars
    }
    assert (bars[bucket_of(old[0])], bars[bucket_of(new[0])]) == ((300, 2), (None, 2))


def test_selected_messages_that_are_gone_or_held_are_left_out(mona: User, lena: User) -> None:
    channel, ids = make_channel(), old_ids(20)
    write(channel, ids[:10], author=VICTOR)
    held = secrets.randbits(60)
    write(channel, ids[10:15], author=held)
    place_hold(HoldRequest(author=str(held)), reason="evidence", actor=lena)
    purge = preview(mona, choose(channel.pk, message_ids=[ids[0], ids[12], ids[19]]))
    assert (purge.manifest, purge.held_at_scan) == (1, 1)
    assert frozen_ids(purge) == [ids[0]]


def test_a_bucket_with_uncounted_deletes_is_read_as_a_whole_once(mona: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids)
    delete_rows(channel.pk, ids[100:140])
    note_deletes(channel.pk, bucket_of(ids[0]), 40, sent_by=postgres_now())
    scanned = [preview(mona, choose(channel.pk, message_ids=ids[:3])).scanned for _ in range(2)]
    assert scanned == [260, 3]
    assert figures.read_figures(channel.pk)[bucket_of(ids[0])]["tombstones"].value == 40
