"""Scope of a selection: its channels, their buckets, and a text for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext

from chatstore.domain.buckets import BucketKey, bucket_of
from chatstore.domain.errors import NotFound
from chatstore.domain.live import Live
from chatstore.domain.roles import Scope as RightScope
from chatstore.domain.snowflakes import MIN_ID
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, Guild
from chatstore.operations.rights import MAX_GRANTS, VIEW_CHANNELS, guilds_for, restrict, scope_for
from chatstore.store import authors, ledger
from chatstore.store.reading.ledger_window import LedgerWindow
from moderation.domain.selection import Selection
from moderation.operations.access.visibility import ADD_PURGE, NO_GUILD, Actor, channel_for, visible_channels
from moderation.presentation.wording import Scope

MAX_INDEX_ROWS = 20_000
"""Rows of the author index that are read for named channels; of an author with more, the channels' ledgers are."""

MAX_CHANNELS_OF_PURGE = MAX_GRANTS
"""Channels that are stored with a purge, so that accounts with roles in single channels see those that are theirs."""

CHANNELS_AT_ONCE = 100
"""Channels whose ledgers are in memory at once."""


class BucketInScope(NamedTuple):
    """A bucket that may contain selected messages. expected: number of rows by the ledger; None: not counted."""

    channel_id: int
    bucket: int
    expected: int | None


def check_scope(selection: Selection, user: Actor) -> None:
    """Raise `NotFound` for a channel that the user cannot see, or a guild in none of whose channels they may delete.

    Raises `Forbidden` for a channel that they can see, and in which they may not delete.
    """
    for channel_id in selection.channel_ids:
        channel_for(user, channel_id, ADD_PURGE)
    guild_id = selection.guild_id
    if guild_id is not None and not visible_channels(user, ADD_PURGE).filter(guild_id=guild_id).exists():
        raise NotFound(_("There is no server %(id)s.", id=str(guild_id)))


def only_guild_id(selection: Selection) -> int | None:
    """Return the guild of all channels that a selection names; None if there are several, or if it names none."""
    if selection.guild_id is not None:
        return selection.guild_id
    guilds = Channel.objects.filter(pk__in=selection.channel_ids).order_by().values_list("guild_id", flat=True)
    found = set(guilds.distinct()[:2])
    return found.pop() if len(found) == 1 else None


def guilds_and_channels(selection: Selection) -> tuple[list[int], list[int] | None] | tuple[None, None]:
    """Return the guilds, and the channels if they are few, that a selection names; (None, None) if it names none."""
    if selection.within is not None or not (selection.channel_ids or selection.guild_id):
        return None, None
    if selection.guild_id is not None:
        return [selection.guild_id], None
    rows = Channel.objects.filter(pk__in=selection.channel_ids).order_by().values_list("guild_id", flat=True)
    return sorted({guild_id or NO_GUILD for guild_id in rows}), _if_few(selection.channel_ids)


def reach_of(
    selection: Selection, guild_ids: Collection[int], channel_ids: Collection[int]
) -> tuple[list[int], list[int] | None]:
    """Return the guilds, and the channels if they are few, of a purge: those it names and those in which it matched.

    Named ones count without a match too: the filter, its words and the reason were written for all of them.
    """
    named_guilds, named_channels = guilds_and_channels(selection)
    if named_guilds is None:
        return sorted(guild_ids), _if_few(channel_ids)
    channels = None if named_channels is None else _if_few({*channel_ids, *named_channels})
    return sorted({*guild_ids, *named_guilds}), channels


def _if_few(channel_ids: Collection[int]) -> list[int] | None:
    return sorted(channel_ids) if len(channel_ids) <= MAX_CHANNELS_OF_PURGE else None


def scope_of_moderator(selection: Selection, moderator: Actor) -> RightScope:
    """Return where a moderator may delete, of what a selection can include: ids of other guilds are not stored."""
    scope = scope_for(moderator, ADD_PURGE)
    if selection.guild_id is None or scope.includes_guild(selection.guild_id):
        return scope
    here = Channel.objects.filter(pk__in=scope.channels, guild_id=selection.guild_id).order_by()
    return RightScope(channels=frozenset(here.values_list("pk", flat=True)))


def is_reduced(selection: Selection, moderator: Actor) -> bool:
    """Return whether a moderator may no longer delete everywhere in the scope of a selection that they drafted."""
    present = scope_for(moderator, ADD_PURGE)
    if present.is_everything:
        return False
    if selection.channel_ids:
        named = frozenset(selection.channel_ids)
        return visible_channels(moderator, ADD_PURGE).filter(pk__in=named).count() < len(named)
    if selection.within is not None:
        return not present.covers(selection.within)
    return selection.guild_id is None or not present.includes_guild(selection.guild_id)


def visible_part(selection: Selection, user: Actor) -> Selection:
    """Return a selection without the kept channels, and the places of its moderator, that a user cannot see.

    The selection of a purge that they may see names no others.
    """
    if scope_for(user, VIEW_CHANNELS).is_everything or not (selection.except_channel_ids or selection.within):
        return selection
    within = selection.within or RightScope()
    ids = {*selection.except_channel_ids, *within.channels}
    known = set(visible_channels(user).filter(pk__in=ids).order_by().values_list("pk", flat=True))
    guilds = guilds_for(user, VIEW_CHANNELS).filter(pk__in=within.guilds).values_list("pk", flat=True)
    return replace(
        selection,
        except_channel_ids=tuple(i for i in selection.except_channel_ids if i in known),
        within=selection.within
        and replace(within, guilds=frozenset(guilds), channels=within.channels.intersection(known)),
    )


def buckets_in_scope(selection: Selection, user: Actor, *, after: BucketKey | None = None) -> Iterator[BucketInScope]:
    """Yield every bucket that may contain selected messages, by channel id, oldest first in each channel.

    after: only those that come later in this order.

    Only channels in which the user may delete now. The ids of selected messages give their buckets, and the author
    index those of authors. Without a channel or guild in the selection, it may include channels without a row in
    Postgres, because the gateway accepts posts to any channel id; a row is created for those, so that the purge
    includes and names them.
    """
    among = _candidates(selection)
    if among is not None and not selection.channel_ids and selection.guild_id is None:
        _create_missing_channels(among)
    channels = visible_channels(user, ADD_PURGE)
    if selection.within is not None:
        # Roles that the moderator got since do not widen it.
        channels = restrict(channels, selection.within, guild="guild_id", channel="pk")
    if selection.channel_ids:
        channels = channels.filter(pk__in=selection.channel_ids)
    elif selection.guild_id is not None:
        channels = channels.filter(guild_id=selection.guild_id)
    channels = channels.exclude(pk__in=selection.except_channel_ids)
    visible = sorted(channels.values_list("pk", flat=True))
    left = [i for i in visible if (among is None or i in among) and (after is None or i >= after[0])]
    for channel_id, rows in _ledgers_of(left):
        for bucket, live in rows:
            if (after is not None and (channel_id, bucket) <= after) or (
                among is not None and bucket not in among[channel_id]
            ):
                continue
            if live.clip(selection.first_id, selection.last_id) is not None:
                yield BucketInScope(channel_id, bucket, live.count)


def _candidates(selection: Selection) -> Mapping[int, Collection[int]] | None:
    """Return the only buckets that can contain selected messages, by channel; None if any bucket can."""
    if selection.message_ids:
        return {selection.channel_ids[0]: frozenset(map(bucket_of, selection.message_ids))}
    # If other programs write too, an author's index may be incomplete.
    if selection.author_ids is None or not settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        return None
    first, last = bucket_of(selection.first_id), bucket_of(selection.last_id)
    buckets: dict[int, set[int]] = defaultdict(set)
    places = authors.buckets_of_authors(selection.author_ids, first=first, last=last)
    for number, (bucket, channel_id) in enumerate(places):
        if selection.channel_ids and number >= MAX_INDEX_ROWS:
            return None
        buckets[channel_id].add(bucket)
    return buckets


def _create_missing_channels(channel_ids: Iterable[int]) -> None:
    """Create a row for each channel that has none, named after its id."""
    wanted = set(channel_ids)
    unknown = wanted.difference(Channel.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    Channel.objects.bulk_create([Channel(pk=i, name=f"unknown {i}") for i in unknown], ignore_conflicts=True)


def _ledgers_of(channel_ids: Sequence[int]) -> Iterator[tuple[int, Iterable[tuple[int, Live]]]]:
    """Yield each channel with the ledger's entry for each bucket that may contain anything, oldest first."""
    if settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        for start in range(0, len(channel_ids), CHANNELS_AT_ONCE):
            for channel_id, rows in ledger.read_ledgers(channel_ids[start : start + CHANNELS_AT_ONCE]):
                yield channel_id, reversed(rows)
        return
    for channel_id in channel_ids:
        window = LedgerWindow(channel_id, start=bucket_of(MIN_ID), descending=False)
        yield channel_id, chain.from_iterable(iter(window.next_rows, []))


def scope_of(selection: Selection, channels: Mapping[int, Channel], guilds: Mapping[int, Guild]) -> Scope:
    """Return the scope of a selection by the names of its channels or its guild.

    Kept channels, and places of its moderator, without a name are ones that the viewer cannot see: "others".
    """
    kept = _name_kept(selection.except_channel_ids, channels)
    within = None
    if selection.within is not None:
        within = _name_places(selection.within, selection, channels, guilds)
        if not within and not selection.within.every_guild:
            return Scope(channels=[gettext("some channels")])
    if within is None and selection.guild_id is not None:
        guild = guilds.get(selection.guild_id)
        return Scope(guild=str(guild) if guild else gettext("server %(id)s") % {"id": selection.guild_id}, kept=kept)
    return Scope(channels=_name_channels(selection.channel_ids, channels), kept=kept, within=within)


def _name_places(
    within: RightScope, selection: Selection, channels: Mapping[int, Channel], guilds: Mapping[int, Guild]
) -> list[str]:
    """Return the names of the guilds and channels that a moderator's roles restrict a selection to.

    An empty list stands for all guilds: everything but direct messages.
    """
    if within.every_guild:
        return []
    found = [guilds[i].name for i in sorted(within.guilds) if i in guilds and selection.guild_id is None]
    found += [gettext("direct messages")] if within.direct and selection.guild_id is None else []
    shown = [channels[i] for i in sorted(within.channels) if i in channels]
    found += [one.full_name for one in shown if selection.guild_id in (None, one.guild_id)]
    has_others = len(shown) < len(within.channels) or not guilds.keys() >= within.guilds
    return [*found, gettext("others")] if found and has_others else found


def _name_kept(channel_ids: Sequence[int], channels: Mapping[int, Channel]) -> list[str]:
    names = [channels[i].full_name for i in channel_ids if i in channels]
    if len(names) == len(channel_ids):
        return names
    return [*names, gettext("others")] if names else [gettext("some")]


def _name_channels(channel_ids: Sequence[int], channels: Mapping[int, Channel]) -> list[str]:
    unnamed = gettext("channel %(id)s")
    return [channels[i].full_name if i in channels else unnamed % {"id": i} for i in channel_ids]
