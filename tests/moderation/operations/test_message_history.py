"""Permissions for the history of a message and for restoring it alone."""

from dataclasses import replace

import pytest

from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.messages import Message
from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import messages
from moderation.management.demo_accounts import set_roles
from moderation.models import Purge, Undo
from moderation.operations.lookup.message_history import (
    MessageStatus,
    history_of_message,
    locate,
    part_of_message,
    quarantined_copy,
)
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.conftest import make_user
from tests.moderation.channels import (
    VICTOR,
    choose,
    confirm,
    everything,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    write,
)


def test_without_permission_nothing_is_shown(mona: User, tess: User, channel: Channel) -> None:
    ids = old_ids(3)
    write(channel, ids)
    with pytest.raises(NotFound):
        history_of_message(tess, channel.pk, ids[0])
    with pytest.raises(Forbidden):
        locate(tess, ids[0])


def test_reading_a_deleted_message_needs_the_permission_to_see_purges(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    purge_now(mona, everything(channel))
    reader = make_user("rita", group=None)
    set_roles(reader, (Role.DIRECT,))
    history = history_of_message(reader, channel.pk, ids[3])
    assert history.status is MessageStatus.DELETED
    with pytest.raises(Forbidden):
        quarantined_copy(reader, history)


@pytest.mark.parametrize("recent", [False, True])
def test_every_column_of_a_deleted_message_can_be_read(mona: User, channel: Channel, *, recent: bool) -> None:
    ids = recent_ids(60) if recent else old_ids(1_300)
    write(channel, ids[1:])
    whole = Message(channel.pk, ids[0], VICTOR, "look \x07 <b>", pinned=True, reactions={"👍": 3}, mentions=(7, 8))
    messages.insert_message(whole, stamp_us=messages.posted_stamp(whole))
    purge_now(mona, everything(channel))
    copy = quarantined_copy(mona, history_of_message(mona, channel.pk, ids[0]))
    assert copy is not None
    assert replace(copy, mentions=tuple(copy.mentions)) == whole
    last = quarantined_copy(mona, history_of_message(mona, channel.pk, ids[-1]))
    assert last is not None
    assert last.message_id == ids[-1]


def test_a_message_edited_and_purged_twice_is_shown_in_its_last_version(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    first = purge_now(mona, everything(channel))
    request_undo(first.pk, moderator=mona, part=UndoPart(message_ids=(ids[3],)), reason="Appeal accepted")
    run_purge(first.pk)
    messages.update_columns(channel.pk, ids[3], {"content": "newest words"}, stamp_us=wall_clock_us())
    purge_now(mona, choose(channel.pk, message_ids=[ids[3]]))
    copy = quarantined_copy(mona, history_of_message(mona, channel.pk, ids[3]))
    assert copy is not None
    assert copy.content == "newest words"


def test_the_status_follows_the_history(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    assert history_of_message(mona, channel.pk, ids[0]).status is MessageStatus.LIVE
    assert history_of_message(mona, channel.pk, ids[0] + 1).status is MessageStatus.NEVER_SEEN
    draft = confirm(mona, preview(mona, everything(channel)))
    withdraw_message(channel.pk, ids[5], actor=VICTOR)
    assert history_of_message(mona, channel.pk, ids[5]).status is MessageStatus.WITHDRAWN
    run_purge(draft.pk)
    assert history_of_message(mona, channel.pk, ids[0]).status is MessageStatus.DELETED
    assert history_of_message(mona, channel.pk, ids[5]).status is MessageStatus.WITHDRAWN


def test_a_message_deleted_by_others_before_the_purge_is_gone(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    draft = confirm(mona, preview(mona, everything(channel)))
    messages.delete_row(channel.pk, ids[5], stamp_us=wall_clock_us())
    run_purge(draft.pk)
    assert history_of_message(mona, channel.pk, ids[5]).status is MessageStatus.GONE


def undo_message(user: User, purge: Purge, channel: Channel, message_id: int) -> Undo:
    part = part_of_message(purge.pk, user=user, channel_id=channel.pk, message_id=message_id)
    return request_undo(purge.pk, moderator=user, part=part, reason="Appeal accepted")


def test_only_users_who_may_purge_can_restore_a_message(mona: User, otto: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    with pytest.raises(Forbidden):
        undo_message(otto, purge, channel, ids[0])


def test_restoring_a_message_reads_only_its_own_bucket(mona: User, channel: Channel) -> None:
    early, late = old_ids(130, buckets_ago=5), old_ids(130, buckets_ago=3)
    write(channel, early + late)
    purge = purge_now(mona, everything(channel))
    undo = undo_message(mona, purge, channel, late[3])
    assert undo.steps.count() == 1
    run_purge(purge.pk)
    assert messages.read_message(channel.pk, late[3]) is not None
    assert messages.read_message(channel.pk, early[3]) is None


def test_an_unfinished_purge_is_not_offered(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    pause_purge(purge.pk, moderator=mona)
    assert history_of_message(mona, channel.pk, ids[0]).undoable_parts == []
    with pytest.raises(BadInput, match="is not deleted by that purge"):
        part_of_message(purge.pk, user=mona, channel_id=channel.pk, message_id=ids[0])


def test_a_message_withdrawn_by_its_author_is_not_offered(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    draft = confirm(mona, preview(mona, everything(channel)))
    withdraw_message(channel.pk, ids[5], actor=VICTOR)
    run_purge(draft.pk)
    history = history_of_message(mona, channel.pk, ids[5])
    assert [part.is_in_effect for part in history.parts] == [True]
    assert history.undoable_parts == []
    assert len(history_of_message(mona, channel.pk, ids[6]).undoable_parts) == 1
