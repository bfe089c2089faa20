"""The purges that selected a message are found by its id, without unpacking the ids of all others."""

import datetime as dt
import secrets

from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import messages
from moderation.domain.filters import Since
from moderation.domain.outcomes import PurgeOutcome, RestoreOutcome
from moderation.domain.selection import Selection
from moderation.domain.sketches import step_columns
from moderation.domain.states import PurgeState, StepKind, StepState
from moderation.models import Purge, Step
from moderation.operations.access.audit import save_with_next_id
from moderation.operations.lookup.purge_index import find_parts, steps_that_may_contain
from moderation.operations.purging.controls import cancel_purge
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.import_guard import restore_on_import_as
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import (
    VICTOR,
    age_timestamps,
    by_victor,
    choose,
    confirm,
    everything,
    old_ids,
    preview,
    purge_now,
    write,
)


def undo_now(moderator: User, purge: Purge, *ids: int) -> None:
    request_undo(purge.pk, moderator=moderator, part=UndoPart(message_ids=ids), reason="Appeal accepted")
    run_purge(purge.pk)


def test_a_message_no_purge_selected_has_no_purges(mona: User, channel: Channel) -> None:
    ids = old_ids(40)
    write(channel, ids[::2])
    purge_now(mona, everything(channel))
    assert find_parts(ids[1], channel_id=channel.pk) == []


def test_deletes_and_restores_are_listed_newest_first(mona: User, channel: Channel) -> None:
    ids = old_ids(130)
    write(channel, ids)
    first = purge_now(mona, everything(channel))
    undo_now(mona, first, ids[7], ids[8])
    second = purge_now(mona, everything(channel))
    parts = find_parts(ids[7], channel_id=channel.pk)
    assert [(part.purge.pk, part.outcome, part.is_in_effect) for part in parts] == [
        (second.pk, PurgeOutcome.DELETED, True),
        (first.pk, PurgeOutcome.DELETED, False),
    ]
    assert [result.outcome for result in parts[1].undo_results] == [RestoreOutcome.RESTORED]
    assert [part.purge.pk for part in find_parts(ids[9], channel_id=channel.pk)] == [first.pk]
    assert find_parts(ids[9], channel_id=channel.pk)[0].is_in_effect


def test_messages_found_gone_are_distinguished_from_deleted_ones(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    draft = confirm(mona, preview(mona, everything(channel)))
    withdraw_message(channel.pk, ids[3], actor=VICTOR)
    run_purge(draft.pk)
    assert [part.outcome for part in find_parts(ids[3], channel_id=channel.pk)] == [PurgeOutcome.ALREADY_GONE]
    assert [part.outcome for part in find_parts(ids[4], channel_id=channel.pk)] == [PurgeOutcome.DELETED]


def test_an_undo_records_why_it_omitted_a_message(mona: User, channel: Channel) -> None:
    ids = old_ids(300)
    write(channel, ids)
    drafts = [
        preview(mona, choose(channel.pk, before_id=ids[200])),
        preview(mona, choose(channel.pk, after_id=ids[100])),
    ]
    first = run_purge(confirm(mona, drafts[0]).pk)
    age_timestamps(channel)
    second = run_purge(confirm(mona, drafts[1]).pk)
    undo_now(mona, first, ids[150])
    parts = {part.purge.pk: part for part in find_parts(ids[150], channel_id=channel.pk)}
    assert [result.outcome for result in parts[first.pk].undo_results] == [RestoreOutcome.STILL_PURGED]
    assert (parts[first.pk].is_in_effect, parts[second.pk].is_in_effect) == (False, True)
    undo_now(mona, second, ids[150])
    parts = {part.purge.pk: part for part in find_parts(ids[150], channel_id=channel.pk)}
    assert [result.outcome for result in parts[second.pk].undo_results] == [RestoreOutcome.RESTORED]
    assert messages.read_message(channel.pk, ids[150]) is not None


def test_a_requested_undo_is_listed_before_it_ran(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    request_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=(ids[3],)), reason="Appeal accepted")
    assert [result.outcome for result in find_parts(ids[3], channel_id=channel.pk)[0].undo_results] == [
        RestoreOutcome.IN_PROGRESS
    ]
    assert find_parts(ids[4], channel_id=channel.pk)[0].undo_results == []
    run_purge(purge.pk)


def test_messages_restored_by_an_import_no_longer_count_as_deleted(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge_now(mona, everything(channel))
    restore_on_import_as(mona)(channel.pk, bucket_of(ids[0]), ids[:1])
    (part,) = find_parts(ids[0], channel_id=channel.pk)
    assert (part.is_in_effect, [(result.undo, result.outcome) for result in part.undo_results]) == (
        False,
        [(None, RestoreOutcome.RESTORED)],
    )


def test_a_cancelled_purge_kept_what_it_had_not_reached(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    assert [part.outcome for part in find_parts(ids[0], channel_id=channel.pk)] == [PurgeOutcome.WAITING]
    cancel_purge(purge.pk, moderator=mona)
    run_purge(purge.pk)
    assert [part.outcome for part in find_parts(ids[0], channel_id=channel.pk)] == [PurgeOutcome.LEFT]


def test_an_unconfirmed_preview_is_not_listed(mona: User, channel: Channel) -> None:
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
            kind=StepKind.RANGES,
            state=StepState.COUNTED,
            **step_columns([first + room * n + secrets.randbelow(room) for n in range(ids_each)]),
        )
        for number in range(1, channels + 1)
    )


def test_few_manifests_are_unpacked_when_many_channels_share_a_bucket(mona: User) -> None:
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
    assert steps_that_may_contain(wanted).filter(purge_id=part.purge.pk).count() <= 300 / 8 + 29


def test_steps_without_a_sketch_are_unpacked(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    Step.objects.filter(purge=purge).update(first_id=None, last_id=None, sketch=None)
    assert [part.purge.pk for part in find_parts(ids[5], channel_id=channel.pk)] == [purge.pk]


def test_a_step_whose_failed_ids_all_moved_on_contains_nothing(mona: User, channel: Channel) -> None:
    ids = old_ids(120)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    Step.objects.filter(purge=purge).update(**step_columns([]))
    assert find_parts(ids[5], channel_id=channel.pk) == []
