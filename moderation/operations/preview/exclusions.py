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

from django.db.models import Sum

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.store import scans
from moderation.domain.narrowing import rules_out
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.state_labels import STATE_LABELS
from moderation.domain.states import DELETING, PurgeState
from moderation.models import ManifestBucket, ManifestSummary, Purge
from moderation.operations.access.audit import record_action
from moderation.operations.access.visibility import ADD_PURGE, purge_for, require
from moderation.operations.preview.bucket_reads import ScannedBucket, split_bucket
from moderation.operations.preview.manifest_summary import renew_summary
from moderation.operations.preview.scan import hash_manifest, matched_places, prepare_buckets, store_buckets
from moderation.operations.purging.closing import close_approval
from moderation.operations.purging.lifecycle import refuse_ended
from moderation.operations.selection.scope import check_scope
from moderation.operations.steps.claiming import brief_transaction, lock_purge
from moderation.operations.steps.searching import steps_containing

EXCLUDED = "purge_messages_excluded"
INCLUDED = "purge_messages_included"

BucketKey = tuple[int, int]
"""Channel id and bucket."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Change of one bucket: its new part of the manifest, and the ids that were excluded or included."""

    scanned: ScannedBucket
    message_ids: Sequence[int]


def exclude_messages(purge_id: int, ids: Collection[int], *, moderator: User, manifest_hash: bytes) -> Purge:
    """Exclude messages from a preview. Idempotent.

    manifest_hash: of the preview that was shown. Raises `BadInput` if it has changed, if the purge is no longer a
    preview, or for an id that is not in its manifest.
    """
    purge, selection = open_preview(purge_id, moderator)
    wanted = frozenset(ids)
    if wanted <= frozenset(selection.except_ids) or not wanted:
        return purge
    check_preview(purge, manifest_hash)
    chosen = replace(selection, except_ids=tuple(sorted(wanted.union(selection.except_ids))))
    changes = [
        _exclude(purge, key, matched, wanted.intersection(matched))
        for key in _buckets_of(purge, wanted)
        if not wanted.isdisjoint(matched := _frozen_ids(purge, key))
    ]
    found = {message_id for change in changes for message_id in change.message_ids}
    if found != wanted - frozenset(selection.except_ids):
        raise BadInput(_("Some of these messages are not in the preview. Reload it and try again."))
    return _store(purge, chosen, changes, moderator=moderator, manifest_hash=manifest_hash, action=EXCLUDED)


def include_messages(purge_id: int, ids: Collection[int], *, moderator: User, manifest_hash: bytes) -> Purge:
    """Include excluded messages again. Idempotent.

    Raises `BadInput` as `exclude_messages` does, and if a message no longer exists.
    """
    purge, selection = open_preview(purge_id, moderator)
    wanted = frozenset(ids).intersection(selection.except_ids)
    if not wanted:
        return purge
    check_preview(purge, manifest_hash)
    chosen = replace(selection, except_ids=tuple(i for i in selection.except_ids if i not in wanted))
    changes = [_include(purge, chosen, key, found) for key, found in _buckets_of_excluded(purge, wanted).items()]
    return _store(purge, chosen, changes, moderator=moderator, manifest_hash=manifest_hash, action=INCLUDED)


def excluded_messages(purge: Purge) -> list[tuple[int, int]]:
    """Return (channel id, message id) of the excluded messages, ascending.

    The purge's audit log has their channels.
    """
    except_ids = frozenset(Selection.from_json(purge.selection).except_ids)
    found = _buckets_of_excluded(purge, except_ids) if except_ids else {}
    return sorted((channel_id, message_id) for (channel_id, _), ids in found.items() for message_id in ids)


def open_preview(purge_id: int, moderator: User) -> tuple[Purge, Selection]:
    """Return a purge and its selection. Raises `Forbidden`, and `NotFound` for one that the moderator cannot see."""
    require(moderator, ADD_PURGE)
    purge = purge_for(moderator, purge_id, ADD_PURGE)
    selection = Selection.from_json(purge.selection)
    check_scope(selection, moderator)
    return purge, selection


def check_preview(purge: Purge, manifest_hash: bytes) -> None:
    """Raise `BadInput` unless the purge is a preview with this hash."""
    refuse_ended(purge)
    if purge.state != PurgeState.READY:
        raise BadInput(
            _("This purge cannot be changed in its present state: %(state)s.", state=STATE_LABELS[purge.state])
        )
    if purge.manifest_hash is None or bytes(purge.manifest_hash) != manifest_hash:
        raise BadInput(_("The preview has changed since you opened it. Reload it and try again."))


def _buckets_of(purge: Purge, ids: Collection[int]) -> list[BucketKey]:
    """Return every bucket whose frozen ids include one of these."""
    found = steps_containing(purge.steps.all(), ids)
    return list(dict.fromkeys((step.channel_id, step.bucket) for step in found))


def _frozen_ids(purge: Purge, key: BucketKey) -> list[int]:
    """Return the ids of a bucket in the manifest, ascending."""
    steps = purge.steps.filter(channel_id=key[0], bucket=key[1], kind__in=DELETING)
    return sorted(chain.from_iterable(map(unpack_ids, steps.values_list("ids", flat=True))))


def _buckets_of_excluded(purge: Purge, ids: frozenset[int]) -> Mapping[BucketKey, set[int]]:
    found: dict[BucketKey, set[int]] = defaultdict(set)
    for details in purge.audit.filter(action=EXCLUDED).values_list("details", flat=True):
        for channel_id, texts in details["messages"].items():
            for message_id in ids.intersection(map(int, texts)):
                found[int(channel_id), bucket_of(message_id)].add(message_id)
    return found


def _exclude(purge: Purge, key: BucketKey, matched: Sequence[int], excluded: Collection[int]) -> _Change:
    rest = [message_id for message_id in matched if message_id not in excluded]
    authors_by_id, tombstones = _read_bucket(key)
    authors = _authors_of(purge, key)
    authors.subtract(_present_authors(excluded, authors_by_id))
    return _Change(_plan(key, rest, authors_by_id, +authors, tombstones), sorted(excluded))


def _include(purge: Purge, chosen: Selection, key: BucketKey, included: Collection[int]) -> _Change:
    authors_by_id, tombstones = _read_bucket(key)
    missing = len(included) - len(_present_authors(included, authors_by_id))
    if missing:
        raise BadInput(
            ngettext_lazy(
                "%(count)s of these messages no longer exists. Reload the preview.",
                "%(count)s of these messages no longer exist. Reload the preview.",
                missing,
            )
        )
    for message_id in included:
        # It may have been excluded before the preview was narrowed.
        if rules_out(chosen, key[0], message_id, authors_by_id[message_id] or 0):
            raise BadInput(_("The narrowed selection keeps some of these messages. Change the selection first."))
    authors = _authors_of(purge, key)
    authors.update(_present_authors(included, authors_by_id))
    frozen = _frozen_ids(purge, key)
    return _Change(_plan(key, sorted({*frozen, *included}), authors_by_id, authors, tombstones), sorted(included))


def _read_bucket(key: BucketKey) -> tuple[dict[int, int | None], int]:
    """Return (author by message id, None for a row with only a late edit; tombstones that the read scanned)."""
    pages = scans.read_all_ids(*key)
    authors_by_id = {message_id: author for page in pages for message_id, author in page}
    return authors_by_id, pages.count_tombstones()


def _present_authors(ids: Collection[int], authors_by_id: Mapping[int, int | None]) -> list[int]:
    """Return the authors of those messages that still exist."""
    return [author for author in map(authors_by_id.get, ids) if author is not None]


def _authors_of(purge: Purge, key: BucketKey) -> Counter[int]:
    known = purge.manifest_buckets.filter(channel_id=key[0], bucket=key[1]).values_list("authors", flat=True)
    return Counter({int(author): count for counts in known for author, count in counts.items()})


def _plan(
    key: BucketKey, matched: list[int], authors_by_id: Mapping[int, int | None], authors: Counter[int], tombstones: int
) -> ScannedBucket:
    channel_id, bucket = key
    survivors = sorted(authors_by_id.keys() - frozenset(matched))
    return ScannedBucket(
        channel_id=channel_id,
        bucket=bucket,
        scanned=len(authors_by_id),
        matched=matched,
        survivors=len(survivors),
        authors=authors,
        split=split_bucket(
            bucket,
            matched,
            survivors,
            existing_tombstones=tombstones,
            now_ms=postgres_now_us() // 1_000,
        ),
    )


def _store(
    purge: Purge, chosen: Selection, changes: Sequence[_Change], *, moderator: User, manifest_hash: bytes, action: str
) -> Purge:
    message_ids: dict[str, list[str]] = defaultdict(list)
    with brief_transaction():
        locked = lock_purge(purge.pk)
        # It may have been confirmed or changed while the buckets were read.
        check_preview(locked, manifest_hash)
        for change in changes:
            here = {"channel_id": change.scanned.channel_id, "bucket": change.scanned.bucket}
            purge.steps.filter(**here).delete()
            ManifestBucket.objects.filter(purge=purge, **here).delete()
            message_ids[str(change.scanned.channel_id)] += map(str, change.message_ids)
        left = [change.scanned for change in changes if change.scanned.matched]
        store_buckets(purge.pk, prepare_buckets(purge.pk, left))
        store_changed(purge, chosen, moderator=moderator, action=action, details={"messages": message_ids})
    renew_summary(purge)
    return purge


def store_changed(
    purge: Purge, chosen: Selection, *, moderator: User, action: str, details: Mapping[str, object]
) -> None:
    """Store a preview's new selection, counts and hash, after its buckets were changed in the same transaction.

    Its summary is deleted; after the transaction, `renew_summary` computes it again.
    """
    left = purge.manifest_buckets.aggregate(left=Sum("count", default=0))["left"]
    new_hash = hash_manifest(purge.pk)
    if left and new_hash is None:
        raise BadInput(_("This preview was created by an older version of Chatstore. Create a new one."))
    ManifestSummary.objects.filter(purge=purge).delete()
    # The limits of a guild without a message left do not count any more.
    has_several = len(purge.guild_ids or ()) > 1
    Purge.objects.filter(id=purge.pk).update(
        selection=chosen.as_json(),
        manifest_guild_ids=matched_places(purge.pk)[0] if has_several else None,
        manifest=left,
        manifest_hash=new_hash,
        state=PurgeState.READY if left else PurgeState.NOTHING_MATCHED,
    )
    present = {"manifest_hash": new_hash.hex() if new_hash else None, "manifest": left}
    record_action(action, actor=moderator, purge=purge, details={**details, **present})
    close_approval(purge, actor=moderator, cause=_("The preview was changed."))
    purge.refresh_from_db()
