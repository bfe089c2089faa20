"""The purges that selected a message are found by its id, without unpacking the ids of all others."""

import datetime as dt
import secrets

from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.models import Channel
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import messages
from moderation.domain.filters import Since
from moderation.domain.outcomes import Comeback, Fate
from moderation.domain.selection import Selection
from moderation.domain.sketches import step_columns
from moderation.domain.states import PurgeState, StepKind, StepState
from moderation.models import Purge, Step
from moderation.operations.access.audit import save_with_next_id
from moderation.operations.lookup.purge_index import find_parts, steps_that_may_hold
from moderation.operations.purging.controls import cancel_purge
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.import_guard import put_back_as
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.moderation.rooms import (
    VICTOR,
    by_victor,
    choose,
    confirm,
    everything,
    let_stamps_age,
    old_ids,
    preview,
    purge_now,
    write,
)


def take_back(moderator: User, purge: Purge, *ids: int) -> None:
    ask_undo(purge.pk, moderator=moderator, part=UndoPart(message_ids=ids))
    run_purge(purge.pk)


def test_a_message_that_nobody_chose_has_no_purges(mona: User, channel: Channel) -> None:
    ids = old_ids(40)
    write(channel, ids[::2])
    purge_now(mona, everything(channel))
    assert find_parts(ids[1], channel_id=channel.pk) == []


def test_removed_brought_back_and_removed_again_are_all_told_the_newest_first(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    first = purge_now(mona, everything(channel))
    take_back(mona, first, ids[7], ids[8])
    second = purge_now(mona, everything(channel))
    parts = find_parts(ids[7], channel_id=channel.pk)
    assert [(part.purge.pk, part.fate, part.stands) for part in parts] == [
        (second.pk, Fate.DELETED, True),
        (first.pk, Fate.DELETED, False),
    ]
    assert [told.comeback for told in parts[1].returns] == [Comeback.RESTORED]
    assert [part.purge.pk for part in find_parts(ids[9], channel_id=channel.pk)] == [first.pk]
    assert find_parts(ids[9], channel_id=channel.pk)[0].stands


def test_what_a_purge_found_gone_is_told_apart_from_what_it_deleted(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    draft = confirm(mona, preview(mona, everything(channel)))
    withdraw_message(channel.pk, ids[3], actor=VICTOR)
    run_purge(draft.pk)
    assert [part.fate for part in find_parts(ids[3], channel_id=channel.pk)] == [Fate.ALREADY_GONE]
    assert [part.fate for part in find_parts(ids[4], channel_id=channel.pk)] == [Fate.DELETED]


def test_an_undo_says_why_it_left_a_message_out(mona: User, channel: Channel) -> None:
    ids = old_ids(300)
    write(channel, ids)
    drafts = [
        preview(mona, choose(channel.pk, before_id=ids[200])),
        preview(mona, choose(channel.pk, after_id=ids[100])),
    ]
    first = run_purge(confirm(mona, drafts[0]).pk)
    let_stamps_age(channel)
    second = run_purge(confirm(mona, drafts[1]).pk)
    take_back(mona, first, ids[150])
    parts = {part.purge.pk: part for part in find_parts(ids[150], channel_id=channel.pk)}
    assert [told.comeback for told in parts[first.pk].returns] == [Comeback.STILL_PURGED]
    assert (parts[first.pk].stands, parts[second.pk].stands) == (False, True)
    take_back(mona, second, ids[150])
    parts = {part.purge.pk: part for part in find_parts(ids[150], channel_id=channel.pk)}
    assert [told.comeback for told in parts[second.pk].returns] == [Comeback.RESTORED]
    assert messages.read_message(channel.pk, ids[150]) is not None


def test_an_undo_that_is_asked_for_is_told_before_it_ran(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    ask_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=(ids[3],)))
    assert [told.comeback for told in find_parts(ids[3], channel_id=channel.pk)[0].returns] == [Comeback.ON_ITS_WAY]
    assert find_parts(ids[4], channel_id=channel.pk)[0].returns == []
    run_purge(purge.pk)


def test_what_an_import_put_back_no_longer_stands(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge_now(mona, everything(channel))
    put_back_as(mona)(channel.pk, bucket_of(ids[0]), ids[:1])
    (part,) = find_parts(ids[0], channel_id=channel.pk)
    assert (part.stands, [(told.undo, told.comeback) for told in part.returns]) == (
        False,
        [(None, Comeback.RESTORED)],
    )


def test_a_cancelled_purge_left_what_it_had_not_come_to(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    assert [part.fate for part in find_parts(ids[0], channel_id=channel.pk)] == [Fate.WAITING]
    cancel_purge(purge.pk, moderator=mona)
    run_purge(purge.pk)
    assert [part.fate for part in find_parts(ids[0], channel_id=channel.pk)] == [Fate.LEFT]


def test_a_preview_that_was_never_confirmed_took_no_part(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    preview(mona, by_victor(channel))
    assert find_parts(ids[0], channel_id=channel.pk) == []


def make_steps(moderator: User, *, bucket: int, channels: int, ids_each: int) -> list[Step]:
    """Create steps like those of purges of many channels, each with ids spread over the same bucket."""
    purge = Purge(
        state=PurgeState.DONE,
        # The lists opened by other tests show this purge as well.
        selection=Selection(guild_id=1, where=Since(bucket_ids(bucket)[0])).as_json(),
        moderator=moderator,
        confirmed_at=dt.datetime.now(dt.UTC),
        reason="a test",
    )
    save_with_next_id(purge)
    first, last = bucket_ids(bucket)
    room = (last - first) // ids_each
    return Step.objects.bulk_create(
        Step(
            purge=purge,
            ordinal=number,
            channel_id=secrets.randbits(60),
            bucket=bucket,
            kind=StepKind.SPANS,
            state=StepState.COUNTED,
            **step_columns([first + room * n + secrets.randbelow(room) for n in range(ids_each)]),
        )
        for number in range(1, channels + 1)
    )


def test_of_many_channels_purged_in_the_same_ten_days_few_are_unpacked(mona: User) -> None:
    # Decades before the messages that other tests purge.
    bucket = -500 - secrets.randbelow(1_500)
    steps = make_steps(mona, bucket=bucket, channels=300, ids_each=400)
    wanted = steps[123].last_id
    assert wanted is not None
    with CaptureQueriesContext(connection) as queries:
        (part,) = find_parts(wanted)
    assert part.channel_id == steps[123].channel_id
    assert len(queries) == 3
    # One false positive in eight, plus five times the standard deviation.
    assert steps_that_may_hold(wanted).filter(purge_id=part.purge.pk).count() <= 300 / 8 + 29


def test_steps_from_before_sketches_are_looked_through(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    Step.objects.filter(purge=purge).update(first_id=None, last_id=None, sketch=None)
    assert [part.purge.pk for part in find_parts(ids[5], channel_id=channel.pk)] == [purge.pk]


def test_a_step_whose_failed_ids_were_all_moved_on_holds_nothing(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    Step.objects.filter(purge=purge).update(**step_columns([]))
    assert find_parts(ids[5], channel_id=channel.pk) == []
