"""Members of a guild: their roles and when they joined, as a gateway or an export states them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatstore.domain.errors import BadInput
from chatstore.domain.message_limits import check_id, check_text

MAX_ROLES = 50
"""Roles of a member that are kept, the highest ones."""

MAX_ROLE_CHARACTERS = 100
MAX_ICON_CHARACTERS = 500

MAX_FUTURE = dt.timedelta(minutes=1)
"""A time of joining may be this far ahead of our clock. The newest one is kept, so a wrong one would stay."""

EARLIEST = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_COLOR = re.compile("#[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True)
class MemberRole:
    """A role of a member in the chat; not a role of staff. color: "#1ac2b5", or "" for none.

    role_id: names the role where messages mention it; None if unknown.
    """

    name: str
    color: str = ""
    role_id: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """What is known of a chat user in a guild. joined_at: when they last joined. roles: the highest first.

    None means unknown, and replaces nothing that is known.
    """

    user_id: int
    joined_at: dt.datetime | None = None
    roles: tuple[MemberRole, ...] | None = None

    def with_earlier(self, known: Member | None) -> Member:
        """Return the member with what was known before and is not replaced: of two joins the newer one is kept."""
        if known is None:
            return self
        joins = [at for at in (known.joined_at, self.joined_at) if at is not None]
        return Member(self.user_id, max(joins, default=None), known.roles if self.roles is None else self.roles)


def check_member(member: Member, *, now: dt.datetime) -> None:
    """Raise `BadInput` if a member can't be stored. now: aware."""
    check_id(member.user_id, what="user id")
    if member.joined_at is not None:
        _check_joined(member.joined_at, now=now)
    if member.roles is None:
        return
    if not isinstance(member.roles, tuple):
        raise BadInput(f"the roles must be a tuple, not {type(member.roles).__name__}")
    if len(member.roles) > MAX_ROLES:
        raise BadInput(f"pass at most {MAX_ROLES} roles of a member, the highest ones")
    for role in member.roles:
        _check_role(role)


def _check_joined(joined_at: object, *, now: dt.datetime) -> None:
    if not isinstance(joined_at, dt.datetime) or joined_at.tzinfo is None:
        raise BadInput("joined_at must be a datetime with a time zone")
    if not EARLIEST <= joined_at <= now + MAX_FUTURE:
        raise BadInput("joined_at is in the future, or before 1970")


def _check_role(role: object) -> None:
    if not isinstance(role, MemberRole):
        raise BadInput(f"a role must be a MemberRole, not {type(role).__name__}")
    name = check_text("a role's name", role.name, maximum=MAX_ROLE_CHARACTERS)
    if "\x00" in name or not name.strip():
        raise BadInput("a role's name is empty or contains a null character")
    if role.role_id is not None:
        check_id(role.role_id, what="role id")
    if role.color != "" and not clean_color(role.color):
        raise BadInput('a role\'s color must look like "#1ac2b5", or be empty')


def clean_color(raw: object) -> str:
    """Return a color as "#1ac2b5"; "" for anything else."""
    return raw.lower() if isinstance(raw, str) and _COLOR.fullmatch(raw) else ""


def check_icon_url(url: object) -> str:
    """Return the URL of a guild's icon: https, or "" for none. Raises `BadInput`."""
    checked = check_text("the icon's URL", url, maximum=MAX_ICON_CHARACTERS)
    if checked and not is_icon_url(checked):
        raise BadInput("the icon's URL must begin with https:// and contain no spaces")
    return checked


def is_icon_url(url: str) -> bool:
    """Return whether a text can be the URL of an icon. Which hosts a page loads from is decided where it is shown."""
    return (
        url.startswith("https://")
        and len(url) <= MAX_ICON_CHARACTERS
        and url.isascii()
        and url.isprintable()
        and (" " not in url)
    )


def roles_as_json(roles: Sequence[MemberRole]) -> list[dict[str, str]]:
    """Return roles as they are stored with each member, without their IDs."""
    return [{"name": role.name, "color": role.color.lower()} for role in roles]


def roles_from_json(stored: Any) -> tuple[MemberRole, ...]:
    """Return stored roles, the highest first; none if they are unknown."""
    return tuple(map(role_from_json, stored or ()))


def role_from_json(stored: Mapping[str, str]) -> MemberRole:
    """Return one of the roles that are stored."""
    return MemberRole(stored["name"], clean_color(stored["color"]))
