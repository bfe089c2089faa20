"""Failed sign-ins, counted by `axes` for each account and address, and here for an address over all accounts.

One common password, tried with each of many accounts, reaches the limit of none. So an address has a limit of its own,
high enough for an office behind one address: the typing errors of one person end at the limit of their account. A
sign-in forgets the failures of its own account only: otherwise an account of the attacker's would clear the others.
Attempts during the pause are not counted, so that it ends.
"""

from __future__ import annotations

from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username, get_failure_limit
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest


class AttemptsHandler(AxesDatabaseHandler):  # type: ignore[misc]
    """That of `axes`, which also refuses an address whose failures reach `SIGN_IN_ATTEMPTS_PER_ADDRESS`."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return the failures that count for an attempt; at least the limit if the address has to pause."""
        failures: int = super().get_failures(request, credentials)
        limit: int = get_failure_limit(request, credentials)
        if failures < limit and _can_guess_any_account(request, credentials) and _has_to_pause(request):
            return limit
        return failures


def _can_guess_any_account(request: HttpRequest, credentials: dict[str, Any] | None) -> bool:
    """Return whether an attempt names its account: not behind a session, and not where a provider checks passwords."""
    user = getattr(request, "user", None)
    return not (user and user.is_authenticated) and get_client_username(request, credentials) is not None


def _has_to_pause(request: Any) -> bool:
    limit = settings.SIGN_IN_ATTEMPTS_PER_ADDRESS
    if not limit or request.axes_ip_address is None:
        return False
    since = get_cool_off_threshold(request)
    attempts = AccessAttempt.objects.filter(ip_address=request.axes_ip_address, attempt_time__gte=since)
    return bool((attempts.aggregate(total=Sum("failures_since_start"))["total"] or 0) >= limit)
