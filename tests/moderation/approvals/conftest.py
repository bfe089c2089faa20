"""A guild in which purges of more than ten messages need approval, its moderator and its lead."""

import pytest

from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.models import PurgeApproval
from moderation.operations.purging import approvals
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request


@pytest.fixture(autouse=True)
def _all_requests_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the newest requests too, however many other tests have left."""
    monkeypatch.setattr(approvals, "MAX_REQUESTS", 10**6)


@pytest.fixture
def channel() -> Channel:
    """A channel of the guild, with 20 messages."""
    made = make_guild_channel()
    limit(made, messages_without_approval=10)
    return made


@pytest.fixture
def mona(channel: Channel) -> User:
    return member("mona", Role.MODERATOR, channel)


@pytest.fixture
def lena(channel: Channel) -> User:
    return member("lena", Role.LEAD, channel)


@pytest.fixture
def asked(mona: User, channel: Channel) -> PurgeApproval:
    """Mona's request for a purge of all messages."""
    return request(mona, preview_some(mona, 20, channel))
