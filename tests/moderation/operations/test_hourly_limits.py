"""What one person confirms within an hour, and the previews they keep open, stay within the limits of their role."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from chatstore.domain.errors import BadInput
from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.narrowing import keep_other_authors
from moderation.operations.preview.single_message import delete_message
from moderation.operations.purging.approvals import approve_purge
from moderation.operations.purging.lifecycle import discard_preview, draft_purge
from moderation.operations.purging.limits import ApprovalNeeded
from tests.moderation.channels import VICTOR, confirm, everything, old_ids
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request


@pytest.fixture
def channel() -> Channel:
    return make_guild_channel()


@pytest.fixture
def mona(channel: Channel) -> User:
    return member("mona", Role.MODERATOR, channel)


def confirm_earlier(mona: User, channel: Channel, count: int, *, minutes: int = 20) -> Purge:
    purge = confirm(mona, preview_some(mona, count, channel))
    Purge.objects.filter(pk=purge.pk).update(confirmed_at=F("confirmed_at") - dt.timedelta(minutes=minutes))
    return purge


def test_a_refusal_names_the_limit_the_guild_and_when_it_resets(mona: User, channel: Channel) -> None:
    limit(channel, purges_per_hour=2)
    first = confirm_earlier(mona, channel, 3)
    confirm(mona, preview_some(mona, 3, channel))
    purge = preview_some(mona, 3, channel)
    with pytest.raises(BadInput, match="2 of 2 purges in the last hour in Tidewalkers") as refused:
        confirm(mona, purge)
    first.refresh_from_db()
    assert first.confirmed_at is not None
    assert refused.value.text.params["time"] == first.confirmed_at + dt.timedelta(hours=1)  # type: ignore[attr-defined]
    Purge.objects.filter(pk=first.pk).update(confirmed_at=first.confirmed_at - dt.timedelta(minutes=41))
    assert confirm(mona, purge).state == PurgeState.QUEUED


def test_messages_per_hour_are_counted_exactly(mona: User, channel: Channel) -> None:
    limit(channel, messages_per_hour=10)
    confirm_earlier(mona, channel, 6)
    five = preview_some(mona, 5, channel)
    with pytest.raises(BadInput, match="6 of 10 messages in the last hour in Tidewalkers"):
        confirm(mona, five)
    assert confirm(mona, preview_some(mona, 4, channel)).state == PurgeState.QUEUED
    with pytest.raises(ApprovalNeeded, match="up to 10 messages"):
        confirm(mona, preview_some(mona, 11, channel))


def test_what_a_lead_approved_does_not_count(mona: User, channel: Channel) -> None:
    limit(channel, messages_without_approval=10, purges_per_hour=1)
    large = preview_some(mona, 20, channel)
    approve_purge(large.pk, request(mona, large).pk, approver=member("lena", Role.LEAD, channel))
    assert confirm(mona, preview_some(mona, 5, channel)).state == PurgeState.QUEUED


def test_two_confirmations_at_once_do_not_pass_a_limit_of_one(mona: User, channel: Channel) -> None:
    limit(channel, purges_per_hour=1)
    purges = [preview_some(mona, count, channel) for count in (2, 3, 4, 5)]

    def attempt(purge: Purge) -> bool:
        try:
            confirm(User.objects.get(pk=mona.pk), purge)
        except BadInput:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(len(purges)) as pool:
        assert sorted(pool.map(attempt, purges)) == [False, False, False, True]


def test_a_purge_over_two_guilds_counts_in_each(mona: User, channel: Channel) -> None:
    other = make_guild_channel("Gophers")
    limit(other, purges_per_hour=1)
    both = member("bo", Role.MODERATOR, channel, other)
    confirm(both, preview_some(both, 2, channel, other))
    assert confirm(both, preview_some(both, 2, channel)).state == PurgeState.QUEUED
    with pytest.raises(BadInput, match="1 of 1 purge in the last hour in Gophers"):
        confirm(both, preview_some(both, 2, channel, other))


def test_leads_and_administrators_have_not_the_limits_of_moderators(channel: Channel) -> None:
    limit(channel, messages_without_approval=1)
    for role in (Role.LEAD, Role.ADMIN):
        person = member(role, role, channel)
        assert confirm(person, preview_some(person, 5, channel)).state == PurgeState.QUEUED


def test_deleting_one_message_is_a_purge_and_leaves_no_preview(mona: User, channel: Channel) -> None:
    limit(channel, purges_per_hour=1, open_previews=1)
    preview_some(mona, 2, channel)
    delete_message(channel.pk, old_ids(20)[0], moderator=mona, reason="spam")
    with pytest.raises(BadInput, match="1 of 1 purge in the last hour"):
        delete_message(channel.pk, old_ids(20)[1], moderator=mona, reason="spam")
    assert Purge.objects.filter(moderator=mona, state=PurgeState.READY).count() == 1


def test_open_previews_are_limited_until_one_is_discarded(mona: User, channel: Channel) -> None:
    limit(channel, open_previews=2)
    first, _second = preview_some(mona, 2, channel), preview_some(mona, 3, channel)
    with pytest.raises(BadInput, match="2 of 2 open previews in Tidewalkers") as refused:
        draft_purge(moderator=mona, selection=everything(channel))
    assert first.ready_at is not None
    assert refused.value.text.params["time"] == first.ready_at + dt.timedelta(hours=24)  # type: ignore[attr-defined]
    other = member("max", Role.MODERATOR, channel)
    preview_some(other, 2, channel)
    discard_preview(first.pk, moderator=mona)
    preview_some(mona, 2, channel)


def test_a_preview_is_narrowed_at_the_limit(mona: User, channel: Channel) -> None:
    limit(channel, open_previews=1)
    purge = preview_some(mona, 5, channel)
    manifest_hash = bytes(purge.manifest_hash or b"")
    assert keep_other_authors(purge.pk, VICTOR, moderator=mona, manifest_hash=manifest_hash).pk != purge.pk


def test_without_limits_a_confirmation_takes_one_statement_more(mona: User, ada: User, channel: Channel) -> None:
    def statements(person: User) -> list[str]:
        purge = preview_some(person, 3, channel)
        with CaptureQueriesContext(connection) as captured:
            confirm(person, purge)
        return [query["sql"] for query in captured.captured_queries]

    about_limits = [sql for sql in statements(mona) if "moderation_purgelimits" in sql]
    assert len(about_limits) == 1
    assert not [sql for sql in statements(mona) if "FOR NO KEY UPDATE" in sql and "auth_user" in sql]
    assert not [sql for sql in statements(ada) if "moderation_purgelimits" in sql]
