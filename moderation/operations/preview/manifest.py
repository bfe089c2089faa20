"""Pages of the whole manifest of a purge: each message as it is now, or as it was quarantined."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, starmap

from django.db.models import Q

from chatstore.domain import withdrawals
from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, Message
from chatstore.models import Channel
from chatstore.store import messages, scans, withdrawn
from moderation.domain.outcomes import PurgeOutcome, purge_outcome
from moderation.domain.packing import unpack_ids
from moderation.domain.restoring import newest_complete_rows
from moderation.domain.states import DELETING, WITHOUT_COPIES
from moderation.models import Purge, Step
from moderation.operations.access.visibility import Actor, visible_channels
from moderation.operations.preview.exclusions import excluded_messages
from moderation.operations.undo.import_guard import restored_in
from moderation.operations.undo.requests import UndoPart, steps_to_undo
from moderation.store.quarantine import QuarantineKey, quarantine_attempts, quarantined_copies

ENTRIES_PER_PAGE = 50

MAX_MESSAGES_READ = 2_000
"""Maximum number of messages read for one page that is filtered by author. The next page continues from there."""

MAX_EXCLUDED_SHOWN = 100

MAX_BUCKETS_PER_QUERY = 16

MAX_STEPS_SAMPLED = 16
"""Maximum number of steps in which a sample of what an undo restores is looked up."""

MAX_SAMPLE_READ = 500
"""Maximum number of messages read for such a sample: an author may have written few of those of a bucket."""

BUCKETS_AT_ONCE = 100
"""Buckets of the manifest in memory at a time: it may have 50,000."""

Key = tuple[int, int]
"""Channel id and message id: the cursor of a page."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """Message of the manifest.

    message: current version, or the purge's copy; None if there is neither. is_live: it currently exists. is_undone:
    it is no longer deleted by the purge. outcome: None for an excluded message. is_withdrawn: withdrawn by its
    author, so its content must not be shown, even if a copy exists.
    """

    channel: Channel
    message_id: int
    message: Message | None
    is_live: bool
    outcome: PurgeOutcome | None
    is_undone: bool = False
    is_withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class ManifestPage:
    """Page of the manifest, by channel and id. after: exclusive cursor of the next page, or None."""

    entries: Sequence[ManifestEntry]
    after: Key | None


@dataclass(frozen=True, slots=True)
class _BucketShare:
    """Bucket of the manifest. only: the ids to include; None: all of them."""

    channel_id: int
    bucket: int
    only: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class FrozenId:
    """Id of the manifest and its step's outcome for it."""

    message_id: int
    outcome: PurgeOutcome
    is_undone: bool


def list_manifest(
    user: Actor,
    purge: Purge,
    *,
    after: Key | None = None,
    channel_id: int | None = None,
    author_id: int | None = None,
    import_id: str | None = None,
    limit: int = ENTRIES_PER_PAGE,
) -> ManifestPage:
    """Return a page of a purge's messages in the channels that the user may see.

    channel_id, author_id: filters. import_id: only messages that this import restored.
    Raises `StoreUnavailable`.
    """
    channels: dict[int, Channel] = {}
    entries: list[ManifestEntry] = []
    messages_read = 0
    last: Key | None = None
    if import_id is None:
        shares = _buckets_after(purge, after, channel_id=channel_id, author_id=author_id)
    else:
        shares = _restored_after(purge, after, channel_id=channel_id, import_id=import_id)
    for share, steps in _with_steps(purge, _visible(user, shares, channels)):
        frozen = _frozen_ids(share, steps, after)
        while part := list(islice(frozen, limit + 1)):
            found = _read_entries(purge, channels[share.channel_id], share.bucket, part)
            entries += [_hide_withdrawn(entry) for entry in found if author_id is None or _is_by(entry, author_id)]
            last = share.channel_id, part[-1].message_id
            messages_read += len(part)
            if len(entries) > limit:
                shown = entries[:limit]
                return ManifestPage(shown, (shown[-1].channel.pk, shown[-1].message_id))
            if messages_read >= MAX_MESSAGES_READ:
                return ManifestPage(entries, last)
    return ManifestPage(entries, None)


def frozen_ids_of(user: Actor, purge: Purge) -> Iterator[tuple[Channel, int, Iterator[FrozenId]]]:
    """Yield the channel, the bucket and the ids of each bucket of a manifest in the channels that the user may see.

    The ids, ascending, have to be taken before the next bucket.
    """
    channels: dict[int, Channel] = {}
    shares = _buckets_after(purge, None, channel_id=None, author_id=None)
    for share, steps in _with_steps(purge, _visible(user, shares, channels)):
        yield channels[share.channel_id], share.bucket, _frozen_ids(share, steps, None)


def read_copies(purge: Purge, channel_id: int, bucket: int, ids: Sequence[int]) -> Mapping[int, Message]:
    """Return the purge's own copies of some messages of a bucket, without those that their authors withdrew.

    Raises `StoreUnavailable`.
    """
    if not _has_copies(purge):
        return {}
    copies = _read_quarantined(purge, channel_id, bucket, ids)
    noted = withdrawn.read_withdrawals(channel_id, bucket) if copies else withdrawals.NONE
    return {i: copy for i, copy in copies.items() if not noted.has(i, author_id=copy.author_id)}


def sample_restorable(
    purge: Purge, part: UndoPart, *, channels: Mapping[int, Channel], limit: int
) -> list[ManifestEntry]:
    """Return up to `limit` messages that an undo restores in some channels, the newest of its first steps there.

    Each as it was copied; those without a copy, and those that their authors withdrew, are left out. channels: by id;
    the user may see them. Raises `StoreUnavailable`.
    """
    entries: list[ManifestEntry] = []
    messages_read = 0
    steps = steps_to_undo(purge, part).filter(channel_id__in=channels).order_by("ordinal")[:MAX_STEPS_SAMPLED]
    for step, some in _restorable_batches(steps.iterator(1), part):
        messages_read += len(some)
        found = _read_entries(purge, channels[step.channel_id], step.bucket, some)
        entries += [entry for entry in found if _has_copy_by(entry, part.author_ids)]
        if len(entries) >= limit or messages_read >= MAX_SAMPLE_READ:
            break
    return sorted(entries[:limit], key=lambda entry: (entry.channel.pk, entry.message_id))


def _restorable_batches(steps: Iterable[Step], part: UndoPart) -> Iterator[tuple[Step, list[FrozenId]]]:
    for step in steps:
        frozen = _restorable_ids(step, part)
        while some := list(islice(frozen, ENTRIES_PER_PAGE)):
            yield step, some


def _restorable_ids(step: Step, part: UndoPart) -> Iterator[FrozenId]:
    """Yield the ids of a step that an undo restores, the newest first."""
    outcomes, wanted = _StepOutcomes(step), frozenset(part.message_ids)
    for message_id in reversed(unpack_ids(step.ids)):
        frozen = outcomes.of_id(message_id)
        is_deleted = frozen.outcome in (PurgeOutcome.DELETED, PurgeOutcome.ALREADY_GONE) and not frozen.is_undone
        if is_deleted and (not wanted or message_id in wanted):
            yield frozen


def _has_copy_by(entry: ManifestEntry, author_ids: Collection[int]) -> bool:
    """Return whether a message can come back, by one of some authors if any are named."""
    if entry.message is None or entry.is_live or entry.is_withdrawn:
        return False
    return not author_ids or entry.message.author_id in author_ids


def list_excluded(user: Actor, purge: Purge) -> list[ManifestEntry]:
    """Return up to `MAX_EXCLUDED_SHOWN` excluded messages. Raises `StoreUnavailable`."""
    excluded = excluded_messages(purge)
    channels = visible_channels(user).select_related("guild").in_bulk({channel_id for channel_id, _ in excluded})
    pairs = [pair for pair in excluded if pair[0] in channels][:MAX_EXCLUDED_SHOWN]
    entries: list[ManifestEntry] = []
    for channel_id, bucket in dict.fromkeys((channel, bucket_of(i)) for channel, i in pairs):
        ids = [i for channel, i in pairs if (channel, bucket_of(i)) == (channel_id, bucket)]
        live = _read_live(channel_id, bucket, ids)
        entries += [ManifestEntry(channels[channel_id], i, live.get(i), i in live, None) for i in ids]
    return entries


def _is_by(entry: ManifestEntry, author_id: int) -> bool:
    return entry.message is not None and entry.message.author_id == author_id


def _hide_withdrawn(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, message=None) if entry.is_withdrawn else entry


def _visible(user: Actor, shares: Iterator[_BucketShare], channels: dict[int, Channel]) -> Iterator[_BucketShare]:
    """Yield the buckets in channels that the user may see, and add these channels: of as many buckets as are needed."""
    while batch := list(islice(shares, BUCKETS_AT_ONCE)):
        unread = {share.channel_id for share in batch} - channels.keys()
        channels |= visible_channels(user).select_related("guild").in_bulk(unread)
        yield from (share for share in batch if share.channel_id in channels)


def _buckets_after(
    purge: Purge, after: Key | None, *, channel_id: int | None, author_id: int | None
) -> Iterator[_BucketShare]:
    buckets = purge.manifest_buckets.filter(_not_before(after))
    if channel_id is not None:
        buckets = buckets.filter(channel_id=channel_id)
    if author_id is not None:
        buckets = buckets.filter(authors__has_key=str(author_id))
    keys = buckets.order_by("channel_id", "bucket").values_list("channel_id", "bucket")
    return starmap(_BucketShare, keys.iterator(BUCKETS_AT_ONCE))


def _restored_after(
    purge: Purge, after: Key | None, *, channel_id: int | None, import_id: str
) -> Iterator[_BucketShare]:
    places = _not_before(after) if channel_id is None else _not_before(after) & Q(channel_id=channel_id)
    return starmap(_BucketShare, restored_in(purge, import_id, places=places))


def _not_before(after: Key | None) -> Q:
    """Return a condition for the bucket of the cursor and those after it."""
    if after is None:
        return Q()
    return Q(channel_id__gt=after[0]) | Q(channel_id=after[0], bucket__gte=bucket_of(after[1]))


def _with_steps(purge: Purge, shares: Iterator[_BucketShare]) -> Iterator[tuple[_BucketShare, Sequence[Step]]]:
    """Yield buckets with the purge's steps there: those of one, then of two, four and more buckets a query.

    A page is often filled by one bucket, whose ids take most of the memory.
    """
    for channel_id, group in groupby(shares, key=lambda share: share.channel_id):
        size = 1
        while batch := list(islice(group, size)):
            steps: dict[int, list[Step]] = defaultdict(list)
            buckets = [share.bucket for share in batch]
            for step in purge.steps.filter(channel_id=channel_id, bucket__in=buckets, kind__in=DELETING):
                steps[step.bucket].append(step)
            for share in batch:
                yield share, steps.pop(share.bucket, ())
            size = min(2 * size, MAX_BUCKETS_PER_QUERY)


def _frozen_ids(share: _BucketShare, steps: Iterable[Step], after: Key | None) -> Iterator[FrozenId]:
    """Yield the ids of a bucket's steps after the cursor, ascending."""
    outcomes = [_StepOutcomes(step) for step in steps]
    least = after[1] if after is not None and after[0] == share.channel_id else None
    parts = (((message_id, n) for message_id in outcome.ids_after(least)) for n, outcome in enumerate(outcomes))
    for message_id, n in heapq.merge(*parts):
        if share.only is None or message_id in share.only:
            yield outcomes[n].of_id(message_id)


def _has_copies(purge: Purge) -> bool:
    return purge.confirmed_at is not None and purge.state not in WITHOUT_COPIES


class _PackedIds:
    """Packed ids for membership tests one at a time: a list takes half the memory of a set."""

    def __init__(self, packed: bytes | memoryview | None) -> None:
        self.ids = unpack_ids(packed)

    def __contains__(self, message_id: object) -> bool:
        if not isinstance(message_id, int):
            return False
        index = bisect_left(self.ids, message_id)
        return index < len(self.ids) and self.ids[index] == message_id


class _StepOutcomes:
    """Outcome of a step for each of its ids."""

    def __init__(self, step: Step) -> None:
        self._state = step.state
        self._ids, self._gone = unpack_ids(step.ids), _PackedIds(step.gone_ids)
        self._failed, self._undone = _PackedIds(step.failed_ids), _PackedIds(step.undone_ids)

    def ids_after(self, least: int | None) -> Iterator[int]:
        """Iterate over the ids above `least`, ascending."""
        return islice(self._ids, 0 if least is None else bisect_right(self._ids, least), None)

    def of_id(self, message_id: int) -> FrozenId:
        """Return the outcome for one id."""
        outcome = purge_outcome(message_id, state=self._state, gone=self._gone, failed=self._failed)
        return FrozenId(message_id, outcome, message_id in self._undone)


def _read_entries(purge: Purge, channel: Channel, bucket: int, frozen: Sequence[FrozenId]) -> list[ManifestEntry]:
    ids = [entry.message_id for entry in frozen]
    live = _read_live(channel.pk, bucket, ids)
    missing = [message_id for message_id in ids if message_id not in live]
    quarantined = _read_quarantined(purge, channel.pk, bucket, missing) if missing and _has_copies(purge) else {}
    noted = withdrawn.read_withdrawals(channel.pk, bucket) if quarantined else withdrawals.NONE

    def is_withdrawn(message_id: int) -> bool:
        if message_id in live:
            return False
        return noted.has(message_id, author_id=quarantined[message_id].author_id if message_id in quarantined else None)

    return [
        ManifestEntry(
            channel,
            entry.message_id,
            live.get(entry.message_id) or quarantined.get(entry.message_id),
            entry.message_id in live,
            entry.outcome,
            entry.is_undone,
            is_withdrawn=is_withdrawn(entry.message_id),
        )
        for entry in frozen
    ]


def _read_live(channel_id: int, bucket: int, ids: Sequence[int]) -> Mapping[int, Message]:
    rows = (row for page in scans.read_rows(channel_id, bucket, ids) for row in page if row[AUTHOR_ID] is not None)
    return {row[MESSAGE_ID]: messages.to_message(channel_id, row) for row in rows}


def _read_quarantined(purge: Purge, channel_id: int, bucket: int, ids: Sequence[int]) -> Mapping[int, Message]:
    """Return the purge's own copies of the messages, each from its newest complete attempt."""
    attempts = sorted(quarantine_attempts(purge.pk, channel_id, bucket), reverse=True)
    copies = (quarantined_copies(QuarantineKey(purge.pk, channel_id, bucket, attempt), *ids) for attempt in attempts)
    rows = (row for page in newest_complete_rows(copies, wanted=frozenset(ids)) for row in page)
    return {row[MESSAGE_ID]: messages.to_message(channel_id, row) for row in rows}
