"""Authorization: one function per kind of object that fetches it and checks access.

Missing and forbidden objects look alike from outside: both raise `NotFound`. Only an action that the actor's role
does not include there raises `Forbidden`. `chatstore.operations.rights` answers where an account has a right.

A purge belongs to the guilds and channels that its filter names, and to those in which it matched: it is visible to
accounts that may see every one of them, because its filter, its words and its reason were written for all of them. A
purge of all channels names none; before it is scanned it is its author's, and afterwards too while they may see
wherever their roles applied then. Kept channels, and places of its moderator's
roles, are left out of what an account is shown that cannot see them (`visible_part`). Of a purge that an account cannot
see it is still shown what happened in its own channels: how many messages were deleted, when, and by whom.

Its guilds are those of its channels when it was scanned. A channel may be in another one since, so what deletes,
restores or erases messages checks the channels as they are now, too (`require_over_matches`).
"""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import BooleanField, Case, Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from chatstore.domain.errors import Forbidden, NotFound
from chatstore.domain.roles import Scope
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, Guild
from chatstore.models.chat import ChannelQuerySet
from chatstore.operations.rights import VIEW_CHANNELS, in_scope, require, restrict, scope_for
from moderation.domain.states import PurgeState
from moderation.models import Purge, PurgeApproval

Actor = AbstractUser | AnonymousUser

ADD_PURGE = "moderation.add_purge"
VIEW_PURGES = "moderation.view_purge"
APPROVE = "moderation.approve_purge"

NO_GUILD = 0
"""The guild of direct messages among those of a purge."""

__all__ = [
    "ADD_PURGE",
    "APPROVE",
    "VIEW_PURGES",
    "Actor",
    "channel_for",
    "decidable_purges",
    "decidable_requests",
    "guilds_with_channels",
    "hidden_purges",
    "may_in",
    "may_over",
    "may_over_matches",
    "may_over_visible",
    "name_of",
    "not_everywhere",
    "purge_for",
    "purges_within",
    "require",
    "require_over_matches",
    "visible_channels",
    "visible_purges",
]


def name_of(staff: AbstractUser) -> str:
    """Return the display name of a staff account: the full name, or else the user name."""
    return staff.get_full_name() or staff.get_username()


def visible_channels(user: Actor, right: str = VIEW_CHANNELS) -> ChannelQuerySet:
    """Return the channels in which a user has a right, with their guilds."""
    channels = Channel.objects.select_related("guild")
    return restrict(channels, scope_for(user, right), guild="guild_id", channel="pk")


def guilds_with_channels(user: Actor, right: str = VIEW_CHANNELS) -> QuerySet[Guild]:
    """Return the guilds with channels in which a user has a right, by name."""
    return Guild.objects.filter(Exists(visible_channels(user, right).filter(guild_id=OuterRef("pk"))))


def channel_for(user: Actor, channel_id: int, right: str = VIEW_CHANNELS) -> Channel:
    """Return the channel with its guild. Raises `NotFound` if it is missing or not visible to the user.

    Raises `Forbidden` if it is visible and the user does not have the right there.
    """
    channel = visible_channels(user).filter(pk=channel_id).first()
    if channel is None:
        raise NotFound(_("There is no channel %(id)s.", id=str(channel_id)))
    if not may_in(user, right, channel):
        raise Forbidden(_("Your role in this channel does not include this. Ask an administrator."))
    return channel


def may_in(user: Actor, right: str, channel: Channel) -> bool:
    """Return whether a user has a right in a channel."""
    return scope_for(user, right).includes(channel.pk, channel.guild_id)


def visible_purges(user: Actor, right: str = VIEW_PURGES) -> QuerySet[Purge]:
    """Return the purges over whose channels a user has a right, with their moderators."""
    purges = Purge.objects.filter(is_rewrite=False).select_related("moderator")
    scope = scope_for(user, right)
    return purges if scope.is_everything else purges.filter(_is_within(scope, user))


def hidden_purges(user: Actor, purge_ids: Collection[int]) -> set[int]:
    """Return those of some purges that a user may not see."""
    if not purge_ids or scope_for(user, VIEW_PURGES).is_everything:
        return set()
    visible = visible_purges(user).filter(pk__in=purge_ids).order_by().values_list("pk", flat=True)
    return set(purge_ids).difference(visible)


def purge_for(user: Actor, purge_id: int, right: str = VIEW_PURGES) -> Purge:
    """Return the purge with its moderator. Raises `NotFound` if it is missing or not visible to the user.

    Raises `Forbidden` if it is visible and the user does not have the right over all of its channels.
    """
    purge = visible_purges(user).filter(pk=purge_id).first()
    if purge is None:
        raise NotFound(_("There is no purge %(id)s.", id=str(purge_id)))
    if not may_over_visible(user, right, purge):
        raise not_everywhere()
    return purge


def may_over_visible(user: Actor, right: str, purge: Purge) -> bool:
    """Return `may_over` for a purge that was just fetched by `purge_for` or `visible_purges` for this user.

    Who has the right wherever they may view purges has it over this one: that needs no query.
    """
    return scope_for(user, right) == scope_for(user, VIEW_PURGES) or may_over(user, right, purge)


def purges_within(user: Actor, right: str, purge_ids: Collection[int]) -> set[int]:
    """Return those of some purges, all of which a user may see, over which they have a right: in one query at most."""
    if not purge_ids or scope_for(user, right) == scope_for(user, VIEW_PURGES):
        return set(purge_ids)
    within = visible_purges(user, right).filter(pk__in=purge_ids).order_by()
    return set(within.values_list("pk", flat=True))


def may_over(user: Actor, right: str, purge: Purge) -> bool:
    """Return whether a user has a right over all channels of a visible purge."""
    if right == VIEW_PURGES or scope_for(user, right).is_everything:
        return True
    return visible_purges(user, right).filter(pk=purge.pk).exists()


def may_over_matches(user: Actor, right: str, purge: Purge, *, channel_ids: Collection[int] = ()) -> bool:
    """Return whether a user has a right now in each channel in which a purge matched. channel_ids: only in these."""
    scope = scope_for(user, right)
    if scope.is_everything:
        return True
    matched = purge.manifest_buckets.filter(channel_id__in=channel_ids) if channel_ids else purge.manifest_buckets
    is_here = Case(When(in_scope(scope, guild="guild_id", channel="pk"), then=True), default=False)
    channel = Channel.objects.filter(pk=OuterRef("channel_id")).order_by().annotate(is_here=is_here)
    # One look-up by the primary key for each bucket: as a join, it reads the guild's channels for each.
    return not matched.filter(~Coalesce(Subquery(channel.values("is_here")), False)).exists()


def require_over_matches(user: Actor, right: str, purge: Purge, *, channel_ids: Collection[int] = ()) -> None:
    """Raise `Forbidden` unless `may_over_matches`."""
    if not may_over_matches(user, right, purge, channel_ids=channel_ids):
        raise not_everywhere()


def not_everywhere() -> Forbidden:
    """Return the refusal of what a user may do in a part of a purge's channels only."""
    return Forbidden(_("Your role does not include this in all channels of this purge. Ask an administrator."))


def decidable_purges(user: Actor, right: str) -> QuerySet[Purge]:
    """Return the visible purges over all of whose messages a user has a right, whatever else their filters name."""
    purges, scope = visible_purges(user), scope_for(user, right)
    if scope.is_everything:
        return purges
    return purges.filter(_is_within(scope, user) | _is_in_guilds(scope, "manifest_guild_ids"))


def decidable_requests(user: Actor) -> QuerySet[PurgeApproval]:
    """Return the open requests that a user with the permission to approve may decide, without their own."""
    waiting = PurgeApproval.objects.open().filter(purge__in=decidable_purges(user, APPROVE).order_by())
    return waiting.exclude(requested_by_id=user.pk)


def _is_in_guilds(scope: Scope, column: str) -> Q:
    """Return the condition for purges all of whose guilds in a column are within a scope that is not everything."""
    if scope.every_guild:
        return Q(**{f"{column}__isnull": False}) & ~Q(**{f"{column}__contains": [NO_GUILD]})
    allowed = [*sorted(scope.guilds), *([NO_GUILD] if scope.direct else [])]
    if not allowed:
        return Q(pk__in=())
    # The index finds those that overlap.
    return Q(**{f"{column}__overlap": allowed, f"{column}__contained_by": allowed})


def _is_within(scope: Scope, user: Actor) -> Q:
    """Return the condition for purges all of whose channels are within a scope that is not everything."""
    if scope.is_nothing:
        return Q(pk__in=())
    found = Q(guild_ids=None, moderator_id=user.pk, confirmed_at=None) & ~Q(state=PurgeState.READY)
    found |= _is_in_guilds(scope, "guild_ids") | _is_of_own_roles(scope, user)
    if scope.channels:
        is_listed = Func(
            F("pk"),
            OuterRef("channel_ids"),
            template="(%(expressions)s))",
            arg_joiner=" = ANY(",
            output_field=BooleanField(),
        )
        here = Channel.objects.filter(is_listed).filter(in_scope(scope, guild="guild_id", channel="pk")).order_by()
        # As many as are listed, so that a channel that is no longer in Postgres is in no scope.
        number = here.annotate(one=Value(1)).values("one").annotate(number=Count("pk")).values("number")
        found |= Q(channel_ids__len=Subquery(number))
    return found


def _is_of_own_roles(scope: Scope, user: Actor) -> Q:
    """Return the condition for a user's own purges of wherever their roles applied, if all of those are in the scope.

    For purges of more channels than are stored with them, by a user with roles in single channels besides guilds.
    """
    where: dict[str, object] = {
        f"selection__within__{kind}__contained_by": [str(i) for i in sorted(ids)]
        for kind, ids in (("guilds", scope.guilds), ("channels", scope.channels))
        if kind == "channels" or not scope.every_guild
    }
    for name in ("every_guild", "direct"):
        if not getattr(scope, name):
            where[f"selection__within__{name}"] = False
    return Q(moderator_id=user.pk, **where)
