"""Limits on what one person deletes, checked in the transaction of the act.

Hourly limits and open previews are counted with the person's account locked, so that two confirmations at the same time
do not both use what is left. What another person approved counts in no limit, and neither does an undo. A purge counts
in the guilds in which it deletes messages, as a whole in each; a guild that its filter names without a match is none of
them. Before it is scanned, it counts in those that it names.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.db.models import Exists, OuterRef
from django.db.models.functions import Coalesce, Now

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import Text, ngettext_lazy
from chatstore.models.users import User
from chatstore.operations.coordination.account_lock import lock_account
from moderation.domain.limits import HOUR, Confirmed, PlaceLimits, free_at
from moderation.domain.states import ApprovalDecision, PurgeState
from moderation.models import Purge, PurgeApproval
from moderation.operations.access.limits import limits_of
from moderation.operations.access.visibility import Actor

_LIMITED_IN = Coalesce("manifest_guild_ids", "guild_ids")
"""As `Purge.limited_in`."""


class ApprovalNeeded(BadInput):
    """The purge is above a limit of its moderator: another person has to approve it."""


def check_confirmation(purge: Purge, moderator: User) -> None:
    """Raise `ApprovalNeeded` or `BadInput` if a purge is above a limit of its moderator. Its row is locked."""
    places = limits_of(moderator, purge.limited_in)
    if text := _describe_approval(purge, places):
        raise ApprovalNeeded(text)
    hourly = [place for place in places if place.limits.per_hour]
    if hourly:
        lock_account(moderator)
        confirmed = _confirmed_in_the_last_hour(moderator)
        for place in hourly:
            _check_hour(purge, place, [one for guild_ids, one in confirmed if place.includes(guild_ids)])


def approval_needed(purge: Purge, moderator: Actor) -> Text | None:
    """Return above which limit of a person a purge is, so that another has to approve it; None if it is not."""
    return _describe_approval(purge, limits_of(moderator, purge.limited_in))


def check_open_previews(
    moderator: User, guild_ids: Sequence[int] | None, *, life: dt.timedelta, replaced: int | None
) -> None:
    """Raise `BadInput` if a person has as many open previews as they may. replaced: one that is discarded at once."""
    places = [place for place in limits_of(moderator, guild_ids) if place.limits.open_previews is not None]
    if not places:
        return
    lock_account(moderator)
    previews = Purge.objects.filter(
        moderator=moderator, state__in=(PurgeState.SCANNING, PurgeState.READY), is_rewrite=False
    )
    rows = previews.exclude(pk=replaced or 0).order_by("pk").values_list(_LIMITED_IN, "ready_at", "created_at")
    opened = [(guilds, (ready_at or created_at) + life) for guilds, ready_at, created_at in rows]
    for place in places:
        ends = sorted(end for guilds, end in opened if place.includes(guilds))
        limit = place.limits.open_previews or 0
        if len(ends) >= limit:
            raise BadInput(
                ngettext_lazy(
                    "You have %(open)s of %(count)s open preview in %(place)s. Confirm or discard it, or wait until it "
                    "expires at %(time)s.",
                    "You have %(open)s of %(count)s open previews in %(place)s. Confirm or discard one, or wait until "
                    "the next expires at %(time)s.",
                    limit,
                    open=len(ends),
                    place=place.name,
                    time=ends[len(ends) - limit],
                )
            )


def _describe_approval(purge: Purge, places: Sequence[PlaceLimits]) -> Text | None:
    limits = [(limit, place) for place in places if (limit := place.limits.without_approval) is not None]
    limit, place = min(limits, key=lambda each: each[0], default=(purge.manifest, None))
    if place is None or purge.manifest <= limit:
        return None
    return ngettext_lazy(
        "In %(place)s, you can delete up to %(count)s message at a time. This purge deletes %(messages)s, so a lead "
        "must approve it.",
        "In %(place)s, you can delete up to %(count)s messages at a time. This purge deletes %(messages)s, so a lead "
        "must approve it.",
        limit,
        place=place.name,
        messages=purge.manifest,
    )


def _check_hour(purge: Purge, place: PlaceLimits, confirmed: Sequence[Confirmed]) -> None:
    at = free_at(confirmed, messages=purge.manifest, limits=place.limits)
    if at is None:
        return
    purges = place.limits.purges_per_hour
    if purges is not None and len(confirmed) >= purges:
        raise BadInput(
            ngettext_lazy(
                "%(done)s of %(count)s purge in the last hour in %(place)s. You can confirm the next one at %(time)s.",
                "%(done)s of %(count)s purges in the last hour in %(place)s. You can confirm the next one at %(time)s.",
                purges,
                done=len(confirmed),
                place=place.name,
                time=at,
            )
        )
    raise BadInput(
        ngettext_lazy(
            "%(done)s of %(count)s message in the last hour in %(place)s. You can confirm this purge at %(time)s.",
            "%(done)s of %(count)s messages in the last hour in %(place)s. You can confirm this purge at %(time)s.",
            place.limits.messages_per_hour or 0,
            done=sum(one.messages for one in confirmed),
            place=place.name,
            time=at,
        )
    )


def _confirmed_in_the_last_hour(moderator: User) -> list[tuple[Sequence[int] | None, Confirmed]]:
    """Return the purges that a person confirmed by themselves, oldest first, with their guilds."""
    approved = PurgeApproval.objects.filter(purge=OuterRef("pk"), decision=ApprovalDecision.APPROVED)
    # Not the clock at the time of each row, for which no index can be used.
    confirmed = Purge.objects.filter(~Exists(approved), moderator=moderator, confirmed_at__gt=Now() - HOUR)
    rows = confirmed.filter(is_rewrite=False).order_by("confirmed_at")
    return [
        (guild_ids, Confirmed(at, messages))
        for guild_ids, at, messages in rows.values_list(_LIMITED_IN, "confirmed_at", "manifest")
        if at is not None
    ]
