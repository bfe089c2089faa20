"""Scope of a selection: its channels, their buckets, and a text for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from django.conf import settings
from django.utils.translation import gettext

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import NotFound
from chatstore.domain.live import Live
from chatstore.domain.snowflakes import MIN_ID
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, Guild
from chatstore.store import authors, ledger
from chatstore.store.reading.ledger_window import LedgerWindow
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.access.visibility import Actor, channel_for, visible_channels
from moderation.presentation.wording import Scope


def check_scope(selection: Selection, user: Actor) -> None:
    """Raise `NotFound` for a channel that the user cannot see, or a guild without visible channels."""
    for channel_id in selection.channel_ids:
        channel_for(user, channel_id)
    guild_id = selection.guild_id
    if guild_id is not None and not visible_channels(user).filter(guild_id=guild_id).exists():
        raise NotFound(_("There is no guild %(id)s.", id=str(guild_id)))


def buckets_in_scope(selection: Selection, user: Actor) -> Iterator[tuple[int, int]]:
    """Yield (channel id, bucket) of every bucket that may contain selected messages, oldest first in each channel.

    Only channels that the user can see now. Without a channel in the selection, the author index saves reading all
    other channels. It may include channels without a row in Postgres, because the gateway accepts posts to any
    channel id; a row is created for those, so that the purge includes and names them.
    """
    buckets_by_channel: Mapping[int, set[int]] = {}
    if not selection.channel_ids and selection.author_ids is not None:
        buckets_by_channel = _posted_in(selection.author_ids)
        if selection.guild_id is None:
            _create_missing_channels(buckets_by_channel)
    channels = visible_channels(user)
    if selection.channel_ids:
        channels = channels.filter(pk__in=selection.channel_ids)
    elif selection.guild_id is not None:
        channels = channels.filter(guild_id=selection.guild_id)
    visible = sorted(channels.values_list("pk", flat=True))
    # If other programs write too, an author's index may be incomplete.
    if selection.channel_ids or selection.author_ids is None or not settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        for channel_id in visible:
            yield from _buckets_of(channel_id, selection)
        return
    for channel_id in visible:
        if channel_id in buckets_by_channel:
            yield from _buckets_of(channel_id, selection, among=buckets_by_channel[channel_id])


def _posted_in(author_ids: Iterable[int]) -> Mapping[int, set[int]]:
    """Return the buckets in which any of the authors has posted, by channel."""
    buckets: dict[int, set[int]] = defaultdict(set)
    for author_id in author_ids:
        for bucket, channel_id in authors.author_buckets(author_id):
            buckets[channel_id].add(bucket)
    return buckets


def _create_missing_channels(channel_ids: Iterable[int]) -> None:
    """Create a row for each channel that has none, named after its id."""
    wanted = set(channel_ids)
    unknown = wanted.difference(Channel.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    Channel.objects.bulk_create([Channel(pk=i, name=f"unknown {i}") for i in unknown], ignore_conflicts=True)


def _buckets_of(channel_id: int, selection: Selection, *, among: set[int] | None = None) -> Iterator[tuple[int, int]]:
    for bucket, live in _ledger_of(channel_id):
        if among is not None and bucket not in among:
            continue
        if live.clip(selection.first_id, selection.last_id) is not None:
            yield channel_id, bucket


def _ledger_of(channel_id: int) -> Iterable[tuple[int, Live]]:
    """Return the ledger's entry for each bucket that may contain anything, oldest first."""
    if settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        return reversed(ledger.read_ledger(channel_id))
    window = LedgerWindow(channel_id, start=bucket_of(MIN_ID), descending=False)
    return chain.from_iterable(iter(window.next_rows, []))


def channels_of(user: Actor, purge: Purge) -> Sequence[Channel]:
    """Return the visible channels in which a purge found messages, or, if none, those of its selection."""
    found = set(purge.manifest_buckets.order_by().values_list("channel_id", flat=True).distinct())
    wanted = found or set(Selection.from_json(purge.selection).channel_ids)
    return list(visible_channels(user).filter(pk__in=wanted))


def scope_of(selection: Selection, channels: Mapping[int, Channel], guilds: Mapping[int, Guild]) -> Scope:
    """Return the scope of a selection by the names of its channels or its guild."""
    if selection.guild_id is not None:
        guild = guilds.get(selection.guild_id)
        return Scope(guild=str(guild) if guild else gettext("guild %(id)s") % {"id": selection.guild_id})
    names = [str(channels.get(i) or gettext("channel %(id)s") % {"id": i}) for i in selection.channel_ids]
    return Scope(channels=names)
