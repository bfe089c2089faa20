"""Permissions for the history of a message and for restoring it alone."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import Permission, User

from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import messages
from moderation.models import Step
from moderation.operations.lookup.message_history import Verdict, ask_undo_of_message, kept_copy, locate, story_of
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.conftest import make_user
from tests.moderation.rooms import (
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


def test_without_rights_nothing_is_told(mona: User, tess: User, channel: Channel) -> None:
    ids = old_ids(3)
    write(channel, ids)
    with pytest.raises(NotFound):
        story_of(tess, channel.pk, ids[0])
    with pytest.raises(Forbidden):
        locate(tess, ids[0])


def test_what_a_removed_message_said_needs_the_right_to_see_purges(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    purge_now(mona, everything(channel))
    reader = make_user("rita", group=None)
    reader.user_permissions.add(Permission.objects.get(codename="view_channel"))
    story = story_of(reader, channel.pk, ids[3])
    assert story.verdict is Verdict.REMOVED
    with pytest.raises(Forbidden):
        kept_copy(reader, story)


@pytest.mark.parametrize("recent", [False, True])
def test_every_column_of_a_removed_message_can_be_read(mona: User, channel: Channel, *, recent: bool) -> None:
    ids = recent_ids(60) if recent else old_ids(1_300)
    write(channel, ids[1:])
    whole = Message(channel.pk, ids[0], VICTOR, "look \x07 <b>", pinned=True, reactions={"👍": 3}, mentions=(7, 8))
    messages.insert_message(whole, stamp_us=messages.posted_stamp(whole))
    purge_now(mona, everything(channel))
    said = kept_copy(mona, story_of(mona, channel.pk, ids[0]))
    assert said is not None
    assert replace(said, mentions=tuple(said.mentions)) == whole
    last = kept_copy(mona, story_of(mona, channel.pk, ids[-1]))
    assert last is not None
    assert last.message_id == ids[-1]


def test_what_was_edited_and_purged_twice_is_shown_as_it_last_was(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    first = purge_now(mona, everything(channel))
    ask_undo(first.pk, moderator=mona, part=UndoPart(message_ids=(ids[3],)))
    run_purge(first.pk)
    messages.update_columns(channel.pk, ids[3], {"content": "newest words"}, stamp_us=wall_clock_us())
    purge_now(mona, choose(channel.pk, message_ids=[ids[3]]))
    said = kept_copy(mona, story_of(mona, channel.pk, ids[3]))
    assert said is not None
    assert said.content == "newest words"


def test_the_verdict_follows_what_happened(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    assert story_of(mona, channel.pk, ids[0]).verdict is Verdict.LIVE
    assert story_of(mona, channel.pk, ids[0] + 1).verdict is Verdict.NEVER_SEEN
    draft = confirm(mona, preview(mona, everything(channel)))
    withdraw_message(channel.pk, ids[5], actor=VICTOR)
    assert story_of(mona, channel.pk, ids[5]).verdict is Verdict.WITHDRAWN
    run_purge(draft.pk)
    assert story_of(mona, channel.pk, ids[0]).verdict is Verdict.REMOVED
    assert story_of(mona, channel.pk, ids[5]).verdict is Verdict.WITHDRAWN


def test_one_that_somebody_else_deleted_before_the_purge_is_gone(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    draft = confirm(mona, preview(mona, everything(channel)))
    messages.delete_row(channel.pk, ids[5], stamp_us=wall_clock_us())
    run_purge(draft.pk)
    assert story_of(mona, channel.pk, ids[5]).verdict is Verdict.GONE


def test_only_who_may_purge_brings_one_back(mona: User, otto: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    with pytest.raises(Forbidden):
        ask_undo_of_message(purge.pk, moderator=otto, channel_id=channel.pk, message_id=ids[0])


def test_bringing_one_back_looks_into_its_own_ten_days_alone(mona: User, channel: Channel) -> None:
    early, late = old_ids(130, buckets_ago=5), old_ids(130, buckets_ago=3)
    write(channel, early + late)
    purge = purge_now(mona, everything(channel))
    undo = ask_undo_of_message(purge.pk, moderator=mona, channel_id=channel.pk, message_id=late[3])
    assert Step.objects.filter(undo=undo).count() == 1
    run_purge(purge.pk)
    assert messages.read_message(channel.pk, late[3]) is not None
    assert messages.read_message(channel.pk, early[3]) is None


def test_a_purge_that_has_not_ended_is_not_offered(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    pause_purge(purge.pk, moderator=mona)
    assert story_of(mona, channel.pk, ids[0]).may_undo == []
    with pytest.raises(BadInput, match="is not deleted by that purge"):
        ask_undo_of_message(purge.pk, moderator=mona, channel_id=channel.pk, message_id=ids[0])


def test_what_its_author_withdrew_is_not_offered_again(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    draft = confirm(mona, preview(mona, everything(channel)))
    withdraw_message(channel.pk, ids[5], actor=VICTOR)
    run_purge(draft.pk)
    story = story_of(mona, channel.pk, ids[5])
    assert [part.stands for part in story.parts] == [True]
    assert story.may_undo == []
    assert len(story_of(mona, channel.pk, ids[6]).may_undo) == 1
