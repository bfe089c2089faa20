"""Sessions of an account: listing them, and ending them by deleting their rows."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth import HASH_SESSION_KEY
from django.db import transaction
from django.utils import timezone

from chatstore.domain.errors import NotFound
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from moderation.models import StaffSession
from moderation.operations.access.audit import record_action

ADDRESS, USER_AGENT, SIGNED_IN_AT = "address", "user_agent", "signed_in_at"
"""Keys in a session's data, which the sign-in stores."""

SECOND_FACTOR = "second_factor"
"""True if the session has passed a second factor; else the roles that enforced one when it needed none."""

MAX_USER_AGENT_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session that is signed in. id: names it on pages, where its key would be a secret."""

    id: str
    address: str | None
    user_agent: str
    signed_in_at: dt.datetime | None
    last_used_at: dt.datetime
    is_current: bool


def list_sessions(account: User, *, current_key: str | None) -> list[ListedSession]:
    """Return the account's sessions, the current one first, then the last used ones."""
    listed = [_describe(row, current_key) for row in _rows_of(account) if _is_valid(row, account)]
    return sorted(listed, key=lambda session: (not session.is_current, -session.last_used_at.timestamp()))


@transaction.atomic
def end_session(account: User, session_id: str) -> None:
    """End one session of the account. Raises `NotFound` if there is no such session, or no longer."""
    row = next((row for row in _rows_of(account) if _id_of(row) == session_id), None)
    if row is None:
        raise NotFound(_("This session has already ended."))
    row.delete()
    record_action("session_ended", actor=account, details={"of_address": row.get_decoded().get(ADDRESS)})


@transaction.atomic
def end_other_sessions(account: User, *, current_key: str | None) -> int:
    """End all sessions of the account but the current one; return their number."""
    ended, _counts = StaffSession.objects.filter(account=account).exclude(session_key=current_key).delete()
    if ended:
        record_action("sessions_ended", actor=account, details={"sessions": ended})
    return ended


def end_all_sessions(accounts: Iterable[int]) -> None:
    """End the sessions of accounts, given by their ids, because their rights have changed."""
    StaffSession.objects.filter(account__in=list(accounts)).delete()


def end_sessions_without_factor(account: User, *, current_key: str | None = None) -> int:
    """End the sessions that have not passed a second factor, but for the current one; return their number.

    Because a new role of the account enforces one, or because it has one from now on.
    """
    without = [row.pk for row in _rows_of(account) if row.get_decoded().get(SECOND_FACTOR) is not True]
    ended, _counts = StaffSession.objects.filter(pk__in=without).exclude(session_key=current_key).delete()
    return ended


def delete_expired_sessions() -> int:
    """Delete the rows of sessions that have expired, also of visitors; return their number."""
    deleted, _counts = StaffSession.objects.filter(expire_date__lt=timezone.now()).delete()
    return deleted


def _rows_of(account: User) -> Iterable[StaffSession]:
    return StaffSession.objects.filter(account=account, expire_date__gt=timezone.now())


def _is_valid(row: StaffSession, account: User) -> bool:
    """Return whether the session is from after the last change of the password; otherwise its next request ends it."""
    return bool(row.get_decoded().get(HASH_SESSION_KEY) == account.get_session_auth_hash())


def _describe(row: StaffSession, current_key: str | None) -> ListedSession:
    data = row.get_decoded()
    signed_in_at = data.get(SIGNED_IN_AT)
    return ListedSession(
        id=_id_of(row),
        address=data.get(ADDRESS),
        user_agent=data.get(USER_AGENT, ""),
        signed_in_at=None if signed_in_at is None else dt.datetime.fromtimestamp(signed_in_at, tz=dt.UTC),
        last_used_at=row.last_used_at,
        is_current=row.session_key == current_key,
    )


def _id_of(row: StaffSession) -> str:
    return hashlib.sha256(row.session_key.encode()).hexdigest()[:32]
