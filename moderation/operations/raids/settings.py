"""Settings of a guild for the detection of raids, which its leads and administrators change. Changes are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Guild
from chatstore.models.users import User
from chatstore.operations.rights import VIEW_CHANNELS, guilds_for, require, scope_for
from moderation.models import RaidSettings
from moderation.operations.access.audit import record_action
from moderation.operations.access.visibility import Actor
from moderation.operations.raids.reading import settings_of

CHANGE_RAID_SETTINGS = "moderation.change_raidsettings"

FIELDS = tuple(field.name for field in RaidSettings._meta.fields if field.name != "guild")
"""Names of the settings, in their order on pages."""


def may_set_raids(user: Actor, guild_id: int | None) -> bool:
    """Return whether a user may change the settings of a guild; of direct messages there are none."""
    return guild_id is not None and scope_for(user, CHANGE_RAID_SETTINGS).includes_guild(guild_id)


def raid_settings_for(user: Actor, guild_id: int) -> RaidSettings:
    """Return the settings of a guild, or the defaults, for those who may change them.

    Raises `Forbidden`; `NotFound` for a guild that the user cannot see.
    """
    guild = _guild_for(user, guild_id)
    settings = settings_of([guild_id])[guild_id]
    settings.guild = guild
    return settings


@transaction.atomic
def set_raid_settings(guild_id: int, values: Mapping[str, Any], *, actor: User) -> None:
    """Set the settings of a guild; those that `values` does not name become the defaults.

    Raises `BadInput` for a value that is not valid, and as `raid_settings_for`.
    """
    _guild_for(actor, guild_id)
    # Locked, so that of two changes at the same time the second one records the first as what was before.
    Guild.objects.select_for_update(no_key=True).get(pk=guild_id)
    stored = RaidSettings.objects.filter(pk=guild_id).first()
    before = _values_of(stored or RaidSettings())
    changed = RaidSettings(guild_id=guild_id, **{name: value for name, value in values.items() if name in FIELDS})
    after = _values_of(changed)
    if before == after:
        return
    try:
        changed.clean_fields(exclude=["guild"])
    except ValidationError as error:
        raise BadInput(_("The settings are not valid: %(reason)s", reason=" ".join(error.messages))) from error
    changed.save(force_insert=stored is None, force_update=stored is not None)
    names = [name for name in FIELDS if before[name] != after[name]]
    details = {
        "before": {name: str(before[name]) for name in names},
        "after": {name: str(after[name]) for name in names},
    }
    record_action("raid_settings_changed", actor=actor, guild_id=guild_id, details=details)


def _guild_for(user: Actor, guild_id: int) -> Guild:
    require(user, CHANGE_RAID_SETTINGS)
    guild = guilds_for(user, VIEW_CHANNELS).filter(pk=guild_id).first()
    if guild is None:
        raise NotFound(_("There is no server %(id)s.", id=str(guild_id)))
    if not may_set_raids(user, guild_id):
        raise Forbidden(_("Only leads and administrators of this server can change its raid settings."))
    return guild


def _values_of(settings: RaidSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in FIELDS}
