"""What staff needs to see health, to start maintenance, and to say when it runs."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser, AnonymousUser

from chatstore.domain.errors import Forbidden

READ_HEALTH = "chatstore.view_finding"
"""Health pages, findings, what ran, metrics."""

MAINTAIN = "chatstore.add_jobrun"
"""Start, stop and repeat a job: probe, measure, repair, compact."""

SCHEDULE = "chatstore.change_jobschedule"
"""Say when jobs run."""


def require(user: AbstractUser | AnonymousUser, permission: str) -> None:
    """Raises `Forbidden` unless the user has the permission ("app.codename")."""
    if not user.has_perm(permission):
        raise Forbidden("Your account may not do this. An administrator can give you the right.")
