"""Roles in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from chatstore.domain.roles import Grant, Role
from moderation.presentation.formats import format_count

ROLE_LABELS: dict[Role, Promise] = {
    Role.MODERATOR: pgettext_lazy("role", "Moderator"),
    Role.LEAD: pgettext_lazy("role", "Lead"),
    Role.AUDITOR: pgettext_lazy("role", "Auditor"),
    Role.DIRECT: pgettext_lazy("role", "Direct messages"),
    Role.OPERATOR: pgettext_lazy("role", "Operator"),
    Role.ADMIN: pgettext_lazy("role", "Administrator"),
}

ROLE_DESCRIPTIONS: dict[Role, Promise] = {
    Role.MODERATOR: _("Reads and deletes messages, restores them, places holds and resolves reports."),
    Role.LEAD: _("Moderates, lifts holds, approves erasures and large purges, and reads the audit log."),
    Role.AUDITOR: _("Reads messages, also deleted ones, and the audit log. Changes nothing."),
    Role.DIRECT: _("Reads direct messages, and may do there what their other roles allow elsewhere."),
    Role.OPERATOR: _("Watches health and runs maintenance. Reads channels and purges."),
    Role.ADMIN: _("Everything, including accounts and roles."),
}

LIMIT_LABELS: dict[str, Promise] = {
    "messages_without_approval": _("Messages per purge without approval"),
    "purges_per_hour": _("Purges per hour"),
    "messages_per_hour": _("Messages per hour"),
    "open_previews": _("Open previews per person"),
}


def role_choices(roles: Iterable[Role]) -> list[tuple[str, Promise, Promise]]:
    """Return the value, the label and the description of each role, to choose from."""
    return [(role.value, ROLE_LABELS[role], ROLE_DESCRIPTIONS[role]) for role in roles]


def summarize_grants(grants: Collection[Grant]) -> str:
    """Return the labels of roles, each once, with the number of places if it is not everywhere.

    "Moderator (2 servers, 1 channel), Operator".
    """
    held = ((label, [grant for grant in grants if grant.role == role]) for role, label in ROLE_LABELS.items())
    return ", ".join(f"{label}{_count_places(of_role)}" for label, of_role in held if of_role)


def _count_places(grants: Collection[Grant]) -> str:
    guilds = sum(grant.guild_id is not None for grant in grants)
    channels = sum(grant.channel_id is not None for grant in grants)
    if guilds + channels < len(grants):
        return ""
    counts = (format_count(count, noun) for count, noun in ((guilds, "server"), (channels, "channel")) if count)
    return f" ({', '.join(counts)})"
