"""Permissions of staff: view health, start maintenance, change schedules."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser, AnonymousUser

from chatstore.domain.errors import Forbidden
from chatstore.domain.texts import gettext_lazy as _

READ_HEALTH = "chatstore.view_finding"
"""View health pages, findings, runs and metrics."""

MAINTAIN = "chatstore.add_jobrun"
"""Start, stop and repeat jobs: probe, measure, repair, compact."""

SCHEDULE = "chatstore.change_jobschedule"
"""Change the schedules of jobs."""


def require(user: AbstractUser | AnonymousUser, permission: str) -> None:
    """Raise `Forbidden` unless the user has the permission ("app.codename")."""
    if not user.has_perm(permission):
        raise Forbidden(_("Your account does not have permission to do this. Ask an administrator."))
