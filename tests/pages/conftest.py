"""Fixture shared by page tests: a channel with a previewed purge."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import pytest

from chatstore.domain.roles import Grant, Role
from chatstore.models import Channel, ChatUser
from chatstore.models.users import User
from moderation.models import AuditEntry, Purge
from moderation.operations.access.invitations import invite
from moderation.operations.preview import first_matches
from tests.chatstore.reports import report
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, by_victor, make_channel, old_ids, preview, write


@dataclass(frozen=True, slots=True)
class PreviewedPurge:
    """A channel of a guild with twelve messages, and a previewed purge of Victor's six."""

    channel: Channel
    ids: list[int]
    victor_ids: list[int]
    purge: Purge
    moderator: User

    @property
    def names(self) -> dict[str, int | str]:
        """The values for the placeholders of a URL."""
        audit = AuditEntry.objects.filter(purge=self.purge).latest("id")
        return {
            "channel": self.channel.pk,
            "message": self.ids[0],
            "purge": self.purge.pk,
            "audit": audit.pk,
            "guild": self.channel.guild_id or 0,
            "chatuser": VICTOR,
            "user": self.moderator.pk,
            "case": report(self.channel, self.ids[0]).pk,
            "invitation": make_invitation(),
        }


def make_invitation() -> str:
    """Invite a new auditor; return the token of the link."""
    name = f"nora-{secrets.token_hex(4)}"
    return invite(name, [Grant(Role.AUDITOR)], actor=make_user("ada", group="admins"))[1]


@pytest.fixture
def previewed() -> PreviewedPurge:
    """Create a new channel with a previewed purge."""
    return make_previewed_purge()


def make_previewed_purge() -> PreviewedPurge:
    """Create a channel with a purge that is waiting for confirmation."""
    channel = make_channel(guild="Harbour")
    ChatUser.objects.update_or_create(pk=VICTOR, defaults={"name": "victor71", "display_name": "Victor 71"})
    ids = old_ids(12)
    write(channel, ids[::2], content="buy")
    write(channel, ids[1::2], author=VICTOR + 1, content="good morning")
    moderator = make_user("mona", group="moderators")
    return PreviewedPurge(channel, ids, ids[::2], preview(moderator, by_victor(channel)), moderator)


@pytest.fixture
def _first_matches_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the search for first matches more than its 0.3 seconds, which a busy machine exceeds."""
    monkeypatch.setattr(first_matches, "SECONDS", 60.0)
