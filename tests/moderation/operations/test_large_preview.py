"""A preview of 50,000 channels is changed in few statements and little memory, and its manifest hash stays exact."""

import hashlib
import tracemalloc
from collections.abc import Sequence

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.domain.errors import BadInput
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.packing import hash_bucket
from moderation.domain.selection import Selection
from moderation.models import ManifestBucket, Purge, Step
from moderation.operations.preview import scan
from moderation.operations.preview.exclusions import exclude_messages, include_messages
from tests.moderation.channels import VICTOR, make_channel, old_ids, preview, write

CHANNELS = 50_000
FIRST_CHANNEL = 7_000_000
IDS = old_ids(40)

MANY_STEPS = f"""
INSERT INTO {Step._meta.db_table} (purge_id, ordinal, channel_id, bucket, kind, state, ids, count, first_id, last_id,
    sketch, deleted, already_gone, held, failed, strategy, wait_reason, error)
SELECT purge_id, 2 + number, %s + number, bucket, kind, state, ids, count, first_id, last_id, sketch, 0, 0, 0, 0, '',
    '', ''
FROM {Step._meta.db_table}, generate_series(1, %s) AS number WHERE purge_id = %s AND channel_id = %s
"""
MANY_BUCKETS = f"""
INSERT INTO {ManifestBucket._meta.db_table} (purge_id, channel_id, bucket, count, first_id, last_id, manifest_hash,
    survivors, authors, plan)
SELECT purge_id, %s + number, bucket, count, first_id, last_id,
    sha256(manifest_hash || int8send(number)), survivors, authors, plan
FROM {ManifestBucket._meta.db_table}, generate_series(1, %s) AS number WHERE purge_id = %s AND channel_id = %s
"""


@pytest.fixture
def purge(mona: User) -> Purge:
    """Two channels have every other message of one bucket; the second one is listed 50,000 times."""
    channels = make_channel(), make_channel()
    for number, channel in enumerate(channels):
        write(channel, IDS[number::2])
    purge = preview(mona, Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,))))
    with connection.cursor() as cursor:
        for sql in (MANY_STEPS, MANY_BUCKETS):
            cursor.execute(sql, [FIRST_CHANNEL, CHANNELS - 2, purge.pk, channels[1].pk])
    return purge


@pytest.mark.slow
def test_a_message_is_excluded_in_few_statements_and_little_memory(mona: User, purge: Purge) -> None:
    tracemalloc.start()
    try:
        with CaptureQueriesContext(connection) as sent:
            less = exclude_messages(purge.pk, IDS[6:7], moderator=mona, manifest_hash=bytes(purge.manifest_hash or b""))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(sent) < 40
    assert peak < 5_000_000
    assert less.manifest == 20 * CHANNELS - 1
    assert bytes(less.manifest_hash or b"") == hash_of_all(less)
    again = include_messages(purge.pk, IDS[6:7], moderator=mona, manifest_hash=bytes(less.manifest_hash or b""))
    assert again.manifest == 20 * CHANNELS
    assert bytes(again.manifest_hash or b"") == hash_of_all(again)


def test_a_preview_without_bucket_hashes_is_not_changed(mona: User, purge: Purge) -> None:
    """Manifests of older versions have no hashes of buckets."""
    purge.manifest_buckets.filter(channel_id=FIRST_CHANNEL + 1).update(manifest_hash=None)
    with pytest.raises(BadInput, match="Create a new one"):
        exclude_messages(purge.pk, IDS[6:7], moderator=mona, manifest_hash=bytes(purge.manifest_hash or b""))
    assert purge.manifest_buckets.get(first_id=IDS[0]).count == 20


def hash_of_all(purge: Purge) -> bytes:
    """Compute the hash from the stored buckets; for the two scanned channels it follows from their ids."""
    hashes = []
    for bucket in purge.manifest_buckets.order_by("channel_id", "bucket"):
        hashes.append(bytes(bucket.manifest_hash or b""))
        if not FIRST_CHANNEL < bucket.channel_id < FIRST_CHANNEL + CHANNELS:
            ids = [i for i in IDS[bucket.first_id == IDS[1] :: 2] if i not in _left_out(purge)]
            assert hashes[-1] == hash_bucket(bucket.channel_id, ids)
    return hashlib.sha256(b"".join(hashes)).digest()


def _left_out(purge: Purge) -> list[int]:
    return [int(text) for text in purge.selection["except"]]


def test_buckets_are_packed_and_hashed_before_the_purge_is_locked(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = make_channel()
    write(channel, IDS)
    is_locked: list[bool] = []

    def hash_noted(channel_id: int, ids: Sequence[int]) -> bytes:
        is_locked.append(connection.in_atomic_block)
        return hash_bucket(channel_id, ids)

    monkeypatch.setattr(scan, "hash_bucket", hash_noted)
    purge = preview(mona, Selection(channel_ids=(channel.pk,), where=Author((VICTOR,))))
    assert (purge.manifest, is_locked) == (len(IDS), [False])
