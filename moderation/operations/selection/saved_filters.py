"""Filters that moderators saved, and the last ones that they used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import RoleGrant
from chatstore.models.users import User
from chatstore.operations.rights import scope_for
from moderation.domain.selection import Selection
from moderation.models import AuditEntry, SavedFilter
from moderation.operations.access.audit import record_action
from moderation.operations.access.visibility import ADD_PURGE, Actor, require
from moderation.operations.selection.parsing import Description, Terms

MAX_OWN_FILTERS = 50
MAX_SHARED_FILTERS = 100
"""Numbers of one's own filters and of other people's shared ones that are listed; of one's own, no more are saved."""

MAX_RECENT = 4
DRAFTS_READ = 30
"""Of the last drafts, which are often alike."""

GROUPS = ("all", "either", "none")


def save_filter(description: Description, *, moderator: User, name: str, is_shared: bool) -> SavedFilter:
    """Save a filter under a name, in place of the moderator's own filter of that name.

    Raises `BadInput` without a name or a condition, and if there are too many.
    """
    require(moderator, "moderation.add_purge")
    name = " ".join(name.split())
    if not name:
        raise BadInput(_("Enter a name for the filter."))
    kept = describe_as_json(description)
    if not kept.keys() & set(GROUPS):
        raise BadInput(_("Nothing to save. Fill in at least one condition."))
    with transaction.atomic():
        own = SavedFilter.objects.filter(owner=moderator)
        if own.exclude(name=name).count() >= MAX_OWN_FILTERS:
            raise BadInput(_("You have %(count)s saved filters. Delete one first.", count=MAX_OWN_FILTERS))
        values = {"description": kept, "is_shared": is_shared, "saved_at": Now()}
        saved, _created = SavedFilter.objects.update_or_create(owner=moderator, name=name, defaults=values)
        record_action("filter_saved", actor=moderator, details={"name": name, "is_shared": is_shared})
    return saved


def delete_filter(filter_id: int, *, moderator: User) -> None:
    """Delete a filter of the moderator's own. Raises `NotFound` for any other."""
    require(moderator, "moderation.add_purge")
    with transaction.atomic():
        own = SavedFilter.objects.select_for_update().filter(pk=filter_id, owner=moderator).first()
        if own is None:
            raise NotFound(_("There is no filter %(id)s.", id=str(filter_id)))
        record_action("filter_deleted", actor=moderator, details={"name": own.name})
        own.delete()


def saved_filter_for(user: User, filter_id: int) -> Description:
    """Return what a filter of the user's own, or a shared one, describes. Raises `NotFound` for any other."""
    saved = SavedFilter.objects.filter(
        Q(owner_id=user.pk) | Q(pk__in=_shared_with(user).values("pk")), pk=filter_id
    ).first()
    if saved is None:
        raise NotFound(_("There is no filter %(id)s.", id=str(filter_id)))
    return description_from_json(saved.description)


def list_filters(user: Actor) -> tuple[list[SavedFilter], list[SavedFilter]]:
    """Return the user's own filters, and those that others share, with their owners; each by name."""
    own = SavedFilter.objects.filter(owner_id=user.pk).defer("description").select_related("owner")
    shared = _shared_with(user).exclude(owner_id=user.pk).defer("description").select_related("owner")
    return list(own[:MAX_OWN_FILTERS]), list(shared[:MAX_SHARED_FILTERS])


def _shared_with(user: Actor) -> QuerySet[SavedFilter]:
    """Return the shared filters of moderators who never had a role elsewhere: a filter may name channels and words.

    Roles that were taken or have ended count too, because the filters are from that time.
    """
    shared, scope = SavedFilter.objects.filter(is_shared=True), scope_for(user, ADD_PURGE)
    if scope.is_everything:
        return shared
    grants = RoleGrant.objects.filter(account=OuterRef("owner"))
    if scope.every_guild:
        others = grants.for_direct_messages().exclude(channel_id__in=scope.channels)
    else:
        others = grants.outside(scope)
    return shared.filter(~Exists(others.order_by()), owner__is_superuser=False)


def recent_selections(user: Actor) -> list[tuple[int, Selection]]:
    """Return the last different selections by conditions that the user drafted, each with a purge that has it."""
    drafted = AuditEntry.objects.filter(actor_id=user.pk, action="purge_drafted").order_by("-id")
    found: dict[Selection, int] = {}
    for purge_id, details in drafted.values_list("purge_id", "details")[:DRAFTS_READ]:
        selection = replace(Selection.from_json(details["selection"]), except_ids=())
        if selection.where is not None:
            found.setdefault(selection, purge_id)
    return [(purge_id, selection) for selection, purge_id in found.items()][:MAX_RECENT]


def describe_as_json(description: Description) -> dict[str, Any]:
    """Return what is filled in, as a JSON object. Deleting a whole channel is not kept."""
    typed = asdict(replace(description, everything=False, channel_name=""))
    groups = {name: {key: value for key, value in typed.pop(name).items() if value} for name in GROUPS}
    return {key: value for key, value in {**typed, **groups}.items() if value}


def description_from_json(value: Mapping[str, Any]) -> Description:
    """Restore what `describe_as_json` returned. Fields that exist no more are left out."""
    kept = _known(value, Description)
    return Description(**kept | {name: Terms(**_known(kept.get(name, {}), Terms)) for name in GROUPS})


def _known(value: Mapping[str, Any], kind: type[Description | Terms]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: tuple(kept) if isinstance(kept, list) else kept for name, kept in value.items() if name in names}
