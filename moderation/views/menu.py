"""Pages that the menu and the search box offer: those that the viewer may open. The admin's index is one of them."""

from __future__ import annotations

from functools import cache
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from chatstore.domain.errors import Forbidden
from chatstore.domain.roles import rights_everywhere
from chatstore.operations.rights import READ_HEALTH, VIEW_ROLES, grants_of

ADMIN = "admin:index"

PAGES: tuple[tuple[str, Promise, str], ...] = (
    ("home", gettext_lazy("Home"), ""),
    ("purges", gettext_lazy("Purges"), "moderation.view_purge"),
    ("compose_everywhere", gettext_lazy("Delete messages"), "moderation.add_purge"),
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

_PURGE_LISTS: tuple[tuple[Promise, str], ...] = (
    (gettext_lazy("My purges"), "by"),
    (gettext_lazy("Recently deleted"), "view"),
)
"""Lists of purges that have no URL name of their own: title, and the parameter that chooses them."""


def pages_titled(request: HttpRequest, text: str) -> list[tuple[str, Promise]]:
    """Return the pages whose title contains a text: path and title."""
    part, user = text.casefold(), request.user
    pages = [
        (reverse(name), title)
        for name, title, permission in PAGES
        if part
        and part in str(title).casefold()
        and (may_open_admin(user) if name == ADMIN else not permission or user.has_perm(permission))
    ]
    if part and user.has_perm("moderation.view_purge"):
        chosen = {"by": user.get_username(), "view": "deleted"}
        pages += [
            (f"{reverse('purges')}?{urlencode({name: chosen[name]})}", title)
            for title, name in _PURGE_LISTS
            if part in str(title).casefold()
        ]
    return pages


def may_open_admin(user: AbstractUser | AnonymousUser) -> bool:
    """Return whether the admin has a list for the viewer. Each of its lists has rows of all channels."""
    return not rights_everywhere(grants_of(user)).isdisjoint(_rights_of_lists())


@cache
def _rights_of_lists() -> frozenset[str]:
    """Return the rights with which a list of the admin is shown: to view its rows, or to change them."""
    return frozenset(
        f"{model._meta.app_label}.{get_permission_codename(action, model._meta)}"
        for model in admin.site._registry
        for action in ("view", "change")
    )


# The permission is that of any list.
@require_safe
def admin_index(request: HttpRequest) -> HttpResponseBase:
    """Show the admin's index. Raises `Forbidden` for viewers to whom it would list nothing."""
    if not may_open_admin(request.user):
        raise Forbidden(gettext("The admin has no list for your role. Ask an administrator."))
    return admin.site.admin_view(admin.site.index)(request)
