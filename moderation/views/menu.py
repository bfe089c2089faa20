"""Pages that the menu and the search box offer: those that the viewer may open."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from chatstore.operations.rights import READ_HEALTH, VIEW_ROLES

ADMIN = "admin:index"

PAGES: tuple[tuple[str, Promise, str], ...] = (
    ("home", gettext_lazy("Home"), ""),
    ("purges", gettext_lazy("Purges"), "moderation.view_purge"),
    ("compose_everywhere", gettext_lazy("Delete messages from several channels"), "moderation.add_purge"),
    ("reports", gettext_lazy("Reports"), "chatstore.view_reportcase"),
    ("holds", gettext_lazy("Holds"), "moderation.view_hold"),
    ("cluster_health", gettext_lazy("Cluster health"), READ_HEALTH),
    ("channel_table", gettext_lazy("All channels"), READ_HEALTH),
    ("maintenance", gettext_lazy("Maintenance"), READ_HEALTH),
    ("runs", gettext_lazy("Runs"), READ_HEALTH),
    ("roles", gettext_lazy("Roles"), VIEW_ROLES),
    ("limits", gettext_lazy("Limits"), VIEW_ROLES),
    ("audit", gettext_lazy("Audit log"), "moderation.view_auditentry"),
    (ADMIN, gettext_lazy("Admin"), ""),
    ("account", gettext_lazy("Account security"), ""),
    ("preferences", gettext_lazy("Preferences"), ""),
)
"""Pages that the search box suggests: URL name, title, and the permission that they need."""


def pages_titled(request: HttpRequest, text: str) -> list[tuple[str, Promise]]:
    """Return the pages whose title contains a text: URL name and title."""
    part, user = text.casefold(), request.user
    return [
        (name, title)
        for name, title, permission in PAGES
        if part
        and part in str(title).casefold()
        and (may_open_admin(request) if name == ADMIN else not permission or user.has_perm(permission))
    ]


def may_open_admin(request: HttpRequest) -> bool:
    """Return whether the admin has a list for the viewer. Most of its lists need a right in all channels."""
    return any(model.has_view_permission(request) for model in admin.site._registry.values())
