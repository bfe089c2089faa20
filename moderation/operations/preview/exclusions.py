"""Exclusion of messages from a preview, and inclusion again: the manifest changes and gets a new hash.

It never grows beyond what the scan froze: only excluded messages can be included again. The store is not changed. The
affected buckets are read and planned again, because their survivors determine how the rest is deleted; then their
steps, the counts and the hash are replaced in one transaction that locks the purge's row. The cost does not depend on
the number of other buckets: Postgres finds the affected ones and computes the hash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from django.contrib.auth.models import User
from django.db.models import Max, Q, Sum

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput
from chatstore.store import scans
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import REMOVING, PurgeState
from moderation.models import ManifestBucket, Purge
from moderation.operations.access.audit import record_act
from moderation.operations.access.visibility import purge_for, require
from moderation.operations.lookup.purge_index import STEPS_AT_ONCE, may_be_in_step
from moderation.operations.preview.scan import ScannedBucket, digest_of_manifest, split_bucket, store_bucket
from moderation.operations.selection.scope import check_places
from moderation.operations.steps.claiming import brief_transaction, lock_purge

UNTICKED = "purge_unticked"
TICKED_AGAIN = "purge_ticked_again"

IDS_AT_ONCE = 100
"""Ids per query."""

Place = tuple[int, int]
"""Channel id and bucket."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Change of one bucket: its new part of the manifest, and the ids that were excluded or included."""

    scanned: ScannedBucket
    moved: Sequence[int]


def untick_messages(purge_id: int, ids: Collection[int], *, moderator: User, digest: bytes) -> Purge:
    """Exclude messages from a preview. Idempotent.

    manifest_hash: of the preview that was shown. Raises `BadInput` if it has changed, if the purge is no longer a
    preview, or for an id that is not in its manifest.
    """
    purge, selection = _open(purge_id, moderator)
    wanted = frozenset(ids)
    if wanted <= frozenset(selection.except_ids) or not wanted:
        return purge
    _check_preview(purge, digest)
    chosen = replace(selection, except_ids=tuple(sorted(wanted.union(selection.except_ids))))
    changes = [
        _leave_out(purge, place, matched, wanted.intersection(matched))
        for place in _places_of(purge, wanted)
        if not wanted.isdisjoint(matched := _frozen_ids(purge, place))
    ]
    found = {message_id for change in changes for message_id in change.moved}
    if found != wanted - frozenset(selection.except_ids):
        raise BadInput("Some of these messages are not in the preview. Reload it and try again.")
    return _store(purge, chosen, changes, moderator=moderator, digest=digest, act=UNTICKED)


def tick_again(purge_id: int, ids: Collection[int], *, moderator: User, digest: bytes) -> Purge:
    """Include excluded messages again. Idempotent.

    Raises `BadInput` as `exclude_messages` does, and if a message no longer exists.
    """
    purge, selection = _open(purge_id, moderator)
    wanted = frozenset(ids).intersection(selection.except_ids)
    if not wanted:
        return purge
    _check_preview(purge, digest)
    chosen = replace(selection, except_ids=tuple(i for i in selection.except_ids if i not in wanted))
    changes = [_take_in(purge, place, found) for place, found in _places_of_unticked(purge, wanted).items()]
    return _store(purge, chosen, changes, moderator=moderator, digest=digest, act=TICKED_AGAIN)


def unticked_messages(purge: Purge) -> list[tuple[int, int]]:
    """Return (channel id, message id) of the excluded messages, ascending.

    The purge's audit log has their channels.
    """
    except_ids = frozenset(Selection.from_json(purge.selection).except_ids)
    found = _places_of_unticked(purge, except_ids) if except_ids else {}
    return sorted((channel_id, message_id) for (channel_id, _), ids in found.items() for message_id in ids)


def _open(purge_id: int, moderator: User) -> tuple[Purge, Selection]:
    require(moderator, "moderation.add_purge")
    purge = purge_for(moderator, purge_id)
    selection = Selection.from_json(purge.selection)
    check_places(selection, moderator)
    return purge, selection


def _check_preview(purge: Purge, digest: bytes) -> None:
    if purge.state != PurgeState.READY:
        raise BadInput(f"A purge that is {purge.get_state_display()} cannot be changed.")
    if purge.digest is None or bytes(purge.digest) != digest:
        raise BadInput("The preview has changed since you opened it. Reload it and try again.")


def _places_of(purge: Purge, ids: Collection[int]) -> list[Place]:
    """Return every bucket whose frozen ids include one of these.

    A bucket number may be frozen in 50,000 channels: steps that cannot contain an id are skipped by their first and
    last id and their sketch; the others are unpacked one after the other.
    """
    wanted = sorted(ids)
    places: dict[Place, None] = {}
    for start in range(0, len(wanted), IDS_AT_ONCE):
        some = frozenset(wanted[start : start + IDS_AT_ONCE])
        may_hold = Q()
        for message_id in some:
            may_hold |= Q(may_be_in_step(message_id), bucket=bucket_of(message_id))
        steps = purge.steps.filter(may_hold, kind__in=REMOVING).order_by("channel_id", "bucket")
        for channel_id, bucket, packed in steps.values_list("channel_id", "bucket", "ids").iterator(STEPS_AT_ONCE):
            if not some.isdisjoint(unpack_ids(packed)):
                places[channel_id, bucket] = None
    return list(places)


def _frozen_ids(purge: Purge, place: Place) -> list[int]:
    """Return the ids of a bucket in the manifest, ascending."""
    steps = purge.steps.filter(channel_id=place[0], bucket=place[1], kind__in=REMOVING)
    return sorted(chain.from_iterable(map(unpack_ids, steps.values_list("ids", flat=True))))


def _places_of_unticked(purge: Purge, ids: frozenset[int]) -> Mapping[Place, set[int]]:
    found: dict[Place, set[int]] = defaultdict(set)
    for details in purge.audit.filter(act=UNTICKED).values_list("details", flat=True):
        for channel_id, texts in details["messages"].items():
            for message_id in ids.intersection(map(int, texts)):
                found[int(channel_id), bucket_of(message_id)].add(message_id)
    return found


def _leave_out(purge: Purge, place: Place, matched: Sequence[int], out: Collection[int]) -> _Change:
    rest = [message_id for message_id in matched if message_id not in out]
    writers, tombstones = _read_bucket(place)
    authors = _authors_of(purge, place)
    authors.subtract(_writers_of(out, writers))
    return _Change(_plan(place, rest, writers, +authors, tombstones), sorted(out))


def _take_in(purge: Purge, place: Place, back: Collection[int]) -> _Change:
    writers, tombstones = _read_bucket(place)
    gone = len(back) - len(_writers_of(back, writers))
    if gone:
        raise BadInput(f"{gone:,} of these messages no longer {'exists' if gone == 1 else 'exist'}.")
    authors = _authors_of(purge, place)
    authors.update(_writers_of(back, writers))
    frozen = _frozen_ids(purge, place)
    return _Change(_plan(place, sorted({*frozen, *back}), writers, authors, tombstones), sorted(back))


def _read_bucket(place: Place) -> tuple[dict[int, int | None], int]:
    """Return (author by message id, None for a row with only a late edit; tombstones that the read scanned)."""
    pages = scans.read_all_ids(*place)
    writers = {message_id: author for page in pages for message_id, author in page}
    return writers, pages.count_tombstones()


def _writers_of(ids: Collection[int], writers: Mapping[int, int | None]) -> list[int]:
    """Return the authors of those messages that still exist."""
    return [author for author in map(writers.get, ids) if author is not None]


def _authors_of(purge: Purge, place: Place) -> Counter[int]:
    known = purge.manifest_buckets.filter(channel_id=place[0], bucket=place[1]).values_list("authors", flat=True)
    return Counter({int(author): count for counts in known for author, count in counts.items()})


def _plan(
    place: Place, matched: list[int], writers: Mapping[int, int | None], authors: Counter[int], tombstones: int
) -> ScannedBucket:
    channel_id, bucket = place
    survivors = sorted(writers.keys() - frozenset(matched))
    return ScannedBucket(
        channel_id=channel_id,
        bucket=bucket,
        scanned=len(writers),
        matched=matched,
        survivors=len(survivors),
        authors=authors,
        split=split_bucket(bucket, matched, survivors, standing_tombstones=tombstones),
    )


def _store(
    purge: Purge, chosen: Selection, changes: Sequence[_Change], *, moderator: User, digest: bytes, act: str
) -> Purge:
    moved: dict[str, list[str]] = defaultdict(list)
    with brief_transaction():
        locked = lock_purge(purge.pk)
        # It may have been confirmed or changed while the buckets were read.
        _check_preview(locked, digest)
        ordinal = purge.steps.aggregate(last=Max("ordinal"))["last"] or 0
        for change in changes:
            here = {"channel_id": change.scanned.channel_id, "bucket": change.scanned.bucket}
            purge.steps.filter(**here).delete()
            ManifestBucket.objects.filter(purge=purge, **here).delete()
            if change.scanned.matched:
                ordinal = store_bucket(purge.pk, change.scanned, ordinal)
            moved[str(change.scanned.channel_id)] += map(str, change.moved)
        left = purge.manifest_buckets.aggregate(left=Sum("count", default=0))["left"]
        now = digest_of_manifest(purge.pk)
        if left and now is None:
            raise BadInput("This preview was created by an older version of Chatstore. Create a new one.")
        Purge.objects.filter(id=purge.pk).update(
            selection=chosen.as_json(),
            manifest=left,
            digest=now,
            state=PurgeState.READY if left else PurgeState.NOTHING_MATCHED,
        )
        details = {"messages": moved, "digest": now.hex() if now else None, "manifest": left}
        record_act(act, actor=moderator, purge=purge, details=details)
        purge.refresh_from_db()
    return purge
