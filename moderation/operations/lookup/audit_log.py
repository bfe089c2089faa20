"""The audit log as pages and exports list it: filtered, newest first, read by key.

Every filter has an index that ends with the id, or restricts the id itself (dates).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q, QuerySet

from chatstore.domain.errors import NotFound
from chatstore.domain.row_ids import EPOCH_MS, encode_row_id
from chatstore.domain.snowflakes import unix_ms
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from chatstore.operations.rights import require, scope_for
from moderation.models import AuditEntry, AuditLink, Purge
from moderation.operations.access.audit import record_action
from moderation.operations.access.staff_names import known_accounts, shared_names
from moderation.operations.access.visibility import NO_GUILD, Actor, name_of, visible_channels, visible_purges
from moderation.operations.lookup.purge_index import find_parts
from moderation.operations.selection.summary import ListedPurge, describe_purges

VIEW_AUDIT = "moderation.view_auditentry"

ENTRIES_PER_PAGE = 50
ENTRIES_PER_READ = 1_000
"""Entries that an export reads at a time."""

MAX_ACCOUNTS = 500
"""Accounts that the page offers to choose from."""


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Filters, all of which apply. since: inclusive. until: exclusive.

    message: (channel, message): what concerns it, and the purges that included it.
    """

    person: int | None = None
    action: str = ""
    guild_ids: Sequence[int] | None = None
    channel_id: int | None = None
    chat_user_id: int | None = None
    purge_id: int | None = None
    message: tuple[int, int] | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """An entry with the names of what it refers to. link: its place in the chain, None if it is not linked yet.

    channel: that of the purge if the entry has none and the purge names only one. purge: with its summary, if it has a
    page that the user may open; the rewrite of a bucket has none. shares_name: another staff account has the display
    name of the actor. Exports leave out both, and the channel of a purge.
    """

    entry: AuditEntry
    channel: Channel | None
    guild: Guild | None
    chat_user: ChatUser | None
    purge: ListedPurge | None = None
    link: AuditLink | None = None
    shares_name: bool = False


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries, newest first. older: the id below which the next page begins; None on the last one."""

    entries: Sequence[ListedEntry]
    older: int | None


def list_entries(user: Actor, query: AuditQuery, *, before: int | None = None) -> AuditPage:
    """Return a page. Raises `Forbidden`."""
    require(user, VIEW_AUDIT)
    rows = _rows_of(user, query)
    found = list((rows if before is None else rows.filter(pk__lt=before))[: ENTRIES_PER_PAGE + 1])
    shown = found[:ENTRIES_PER_PAGE]
    listed = _with_shared_names(user, _with_purges(user, _with_names(shown)))
    return AuditPage(listed, shown[-1].pk if len(found) > len(shown) else None)


def export_entries(query: AuditQuery, *, chosen: dict[str, str], actor: User) -> Iterator[ListedEntry]:
    """Return all entries with their links, read while they are consumed; record the export.

    chosen: the filters as typed. Raises `Forbidden` at once.
    """
    require(actor, VIEW_AUDIT)
    rows = _rows_of(actor, query)
    record_action("audit_exported", actor=actor, details={"filters": chosen})
    return _iterate(rows)


def iterate_entries(user: Actor, query: AuditQuery) -> Iterator[ListedEntry]:
    """Return all entries with their links, read while they are consumed. The caller records it. Raises `Forbidden`."""
    require(user, VIEW_AUDIT)
    return _iterate(_rows_of(user, query))


def entry_for(user: Actor, entry_id: int) -> ListedEntry:
    """Return an entry with its link. Raises `Forbidden`, `NotFound`."""
    require(user, VIEW_AUDIT)
    entry = _rows(user).filter(pk=entry_id).first()
    if entry is None:
        raise NotFound(_("There is no audit entry %(id)s.", id=str(entry_id)))
    return _with_purges(user, _with_names([entry], with_links=True))[0]


def account_named(text: str) -> User | None:
    """Return the staff account with exactly this user name, or else the only one with this mail address."""
    account = User.objects.filter(username=text).first()
    if account is not None or "@" not in text:
        return account
    found = list(User.objects.filter(email__iexact=text)[:2])
    return found[0] if len(found) == 1 else None


def account_names(user: Actor, right: str) -> list[str]:
    """Return the first user names to choose from, of people whom a user knows by a right."""
    accounts = known_accounts(user, right).order_by("username")
    return list(accounts.values_list("username", flat=True)[:MAX_ACCOUNTS])


def _iterate(rows: QuerySet[AuditEntry]) -> Iterator[ListedEntry]:
    before = rows
    while found := list(before[:ENTRIES_PER_READ]):
        yield from _with_names(found, with_links=True, with_namesakes=False)
        before = rows.filter(pk__lt=found[-1].pk)


def _rows(user: Actor) -> QuerySet[AuditEntry]:
    """Return the entries about guilds and channels that a user may see, and, of the whole installation, all others."""
    entries, scope = AuditEntry.objects.all(), scope_for(user, VIEW_AUDIT)
    if scope.every_guild and not scope.direct:
        of_direct = Purge.objects.filter(guild_ids__contains=[NO_GUILD]).order_by().values("pk")
        is_of_none = Q(channel_id=None) & (Q(purge=None) | ~Q(purge__in=of_direct))
        entries = entries.filter(Q(guild_id__isnull=False) | is_of_none | Q(channel_id__in=scope.channels))
    elif not scope.every_guild:
        direct = Q(guild_id=None, channel_id__isnull=False) if scope.direct else Q(pk__in=())
        entries = entries.filter(Q(guild_id__in=scope.guilds) | Q(channel_id__in=scope.channels) | direct)
    # The ids may take megabytes.
    return entries.select_related("actor").defer("ids").order_by("-id")


def _rows_of(user: Actor, query: AuditQuery) -> QuerySet[AuditEntry]:
    rows = _rows(user)
    named = {
        "actor_id": query.person,
        "action": query.action or None,
        "guild_id__in": query.guild_ids,
        "channel_id": query.channel_id,
        "chat_user_id": query.chat_user_id,
        "purge_id": query.purge_id,
        "pk__gte": None if query.since is None else _first_id_at(query.since),
        "pk__lt": None if query.until is None else _first_id_at(query.until),
    }
    rows = rows.filter(**{name: value for name, value in named.items() if value is not None})
    return rows if query.message is None else rows.filter(_concerns(*query.message))


def _concerns(channel_id: int, message_id: int) -> Q:
    """Match entries about a message, and those of the purges that included it, but for their other channels."""
    purges = {part.purge.pk for part in find_parts(message_id, channel_id=channel_id)}
    here = Q(channel_id=channel_id)
    about = here & Q(details__message=str(message_id))
    return about | (Q(purge_id__in=purges) & (here | Q(channel_id=None))) if purges else about


def _first_id_at(time: dt.datetime) -> int:
    return encode_row_id(max(EPOCH_MS, unix_ms(time)), shard=0, sequence=0)


def _with_names(
    entries: Sequence[AuditEntry], *, with_links: bool = False, with_namesakes: bool = True
) -> list[ListedEntry]:
    """Add names and links, with one statement for each kind."""
    chat_users = ChatUser.objects.with_namesakes() if with_namesakes else ChatUser.objects.all()
    channels = _by_id(Channel.objects.select_related("guild"), [entry.channel_id for entry in entries])
    users = _by_id(chat_users, [entry.chat_user_id for entry in entries])
    guilds = _by_id(Guild.objects.all(), [entry.guild_id for entry in entries])
    links: dict[int, AuditLink] = {}
    if with_links:
        found = AuditLink.objects.filter(entry_id__in=[entry.pk for entry in entries])
        links = {link.entry_id: link for link in found}
    return [
        ListedEntry(
            entry,
            channel=channels.get(entry.channel_id),
            guild=guilds.get(entry.guild_id),
            chat_user=users.get(entry.chat_user_id),
            link=links.get(entry.pk),
        )
        for entry in entries
    ]


def _with_purges(user: Actor, listed: Sequence[ListedEntry]) -> list[ListedEntry]:
    """Add the purges that a user may see, with their summaries and channels, in four statements."""
    ids = {one.entry.purge_id for one in listed if one.entry.purge_id is not None}
    if not ids:
        return list(listed)
    channels: dict[int, Channel] = {}

    def find_channels(wanted: Iterable[int]) -> Mapping[int, Channel]:
        channels.update(visible_channels(user).select_related("guild").in_bulk(wanted))
        return channels

    found = describe_purges(user, list(visible_purges(user).filter(pk__in=ids)), find_channels=find_channels)
    purges = {one.purge.pk: one for one in found}
    completed = []
    for one in listed:
        purge, channel = purges.get(one.entry.purge_id or 0), one.channel
        if purge is not None and purge.channel_id is not None and one.entry.channel_id is None:
            channel = channels.get(purge.channel_id)
        completed.append(replace(one, purge=purge, channel=channel))
    return completed


def _with_shared_names(user: Actor, listed: Sequence[ListedEntry]) -> list[ListedEntry]:
    actors = [one.entry.actor for one in listed if one.entry.actor is not None]
    shared = shared_names(actors, among=known_accounts(user, VIEW_AUDIT))
    return [
        replace(one, shares_name=one.entry.actor is not None and name_of(one.entry.actor) in shared) for one in listed
    ]


def _by_id(rows: QuerySet[Any], ids: Sequence[int | None]) -> dict[int | None, Any]:
    wanted = {one for one in ids if one is not None}
    return {row.pk: row for row in rows.filter(pk__in=wanted)} if wanted else {}
