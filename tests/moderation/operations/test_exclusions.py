"""Messages of a preview can be excluded one by one: the manifest hash changes, and exactly the rest is deleted."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from django.db import connection

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.gateway.messages import withdraw_message
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.exclusions import exclude_messages, excluded_messages, include_messages
from moderation.operations.preview.purge_summary import preview_of
from moderation.operations.steps.totals import totals_of
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    buckets_of,
    by_victor,
    confirm,
    everything,
    expected_manifest_hash,
    ids_of,
    make_channel,
    old_ids,
    preview,
    recent_ids,
    run_to_end,
    write,
)


def manifest_hash(purge: Purge) -> bytes:
    return bytes(purge.manifest_hash or b"")


def exclude(moderator: User, purge: Purge, *ids: int) -> Purge:
    return exclude_messages(purge.pk, ids, moderator=moderator, manifest_hash=manifest_hash(purge))


def test_exactly_the_remaining_messages_are_deleted(mona: User, channel: Channel) -> None:
    old, recent = old_ids(300), recent_ids(40)
    write(channel, [*old, *recent])
    purge = preview(mona, everything(channel))
    out = [old[0], old[7], recent[3]]
    purge = exclude(mona, purge, *out)
    left = sorted({*old, *recent}.difference(out))
    assert (purge.manifest, manifest_hash(purge)) == (337, expected_manifest_hash(channel, left))
    purge = run_to_end(confirm(mona, purge))
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.DONE, 337)
    assert ids_of(channel, *buckets_of(old), *buckets_of(recent)) == sorted(out)


def test_excluding_an_id_affects_only_its_own_channel(mona: User, channel: Channel) -> None:
    other, ids = make_channel(), old_ids(40)
    write(channel, ids[:20])
    write(other, ids[20:])
    purge = preview(mona, Selection(channel_ids=(channel.pk, other.pk), where=Author((VICTOR,))))
    purge = exclude(mona, purge, ids[3])
    assert excluded_messages(purge) == [(channel.pk, ids[3])]
    run_to_end(confirm(mona, purge))
    assert (ids_of(channel, bucket_of(ids[0])), ids_of(other, bucket_of(ids[0]))) == ([ids[3]], [])


def test_excluding_replans_and_recounts_the_bucket(mona: User, channel: Channel) -> None:
    ids = old_ids(300)
    write(channel, ids[:200])
    write(channel, ids[200:], author=WILMA)
    purge = preview(mona, everything(channel))
    assert preview_of(purge).per_bucket[0].plan.parts[0].strategy == "drop"
    shown = preview_of(exclude(mona, purge, ids[0], ids[1], ids[250]))
    assert shown.per_author == [(VICTOR, 198), (WILMA, 99)]
    (bucket,) = shown.per_bucket
    assert (bucket.matched, bucket.survivors, bucket.plan.parts[0].strategy) == (297, 3, "ranges")
    assert shown.manifest_hash_hex == manifest_hash(purge.__class__.objects.get(pk=purge.pk)).hex()


def test_including_a_message_again_gives_the_previous_manifest_hash(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    write(channel, ids)
    first = preview(mona, by_victor(channel))
    less = exclude(mona, first, ids[3], ids[5])
    purge = include_messages(less.pk, [ids[3], ids[5]], moderator=mona, manifest_hash=manifest_hash(less))
    assert (purge.manifest, manifest_hash(purge), excluded_messages(purge)) == (150, manifest_hash(first), [])
    assert purge.selection == first.selection
    assert preview_of(purge).per_author == [(VICTOR, 150)]
    run_to_end(confirm(mona, purge))
    assert ids_of(channel, bucket_of(ids[0])) == []


def test_messages_posted_since_are_not_added(mona: User, channel: Channel) -> None:
    ids = old_ids(200)
    write(channel, ids[::2])
    purge = preview(mona, everything(channel))
    write(channel, ids[1::2])
    purge = exclude(mona, purge, ids[0])
    assert preview_of(purge).per_bucket[0].survivors == 101
    run_to_end(confirm(mona, purge))
    assert ids_of(channel, bucket_of(ids[0])) == [ids[0], *ids[1::2]]


def test_a_stale_manifest_hash_is_refused_and_changes_nothing(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    shown = preview(mona, everything(channel))
    now = exclude(mona, shown, ids[0])
    with pytest.raises(BadInput, match="has changed since"):
        exclude_messages(shown.pk, [ids[1]], moderator=mona, manifest_hash=manifest_hash(shown))
    with pytest.raises(BadInput, match="has changed since"):
        include_messages(shown.pk, [ids[0]], moderator=mona, manifest_hash=manifest_hash(shown))
    now.refresh_from_db()
    assert now.manifest == 19
    with pytest.raises(BadInput, match="preview has changed"):
        confirm(mona, shown)


def test_excluding_gives_the_same_plan_as_a_scan_without_the_messages(mona: User, channel: Channel) -> None:
    old, recent = old_ids(400), recent_ids(120)
    write(channel, [*old[::2], *recent])
    write(channel, old[1::2], author=WILMA)
    selection = Selection(channel_ids=(channel.pk,), where=Author((VICTOR,)))
    out = (old[0], old[200], recent[7])
    less = exclude(mona, preview(mona, selection), *out)
    fresh = preview(mona, replace(selection, except_ids=out))
    assert (less.manifest, manifest_hash(less), less.selection) == (
        fresh.manifest,
        manifest_hash(fresh),
        fresh.selection,
    )
    assert preview_of(less) == preview_of(fresh)
    assert [(step.kind, bytes(step.ids)) for step in less.steps.order_by("bucket", "kind")] == [
        (step.kind, bytes(step.ids)) for step in fresh.steps.order_by("bucket", "kind")
    ]


def test_the_second_of_two_concurrent_exclusions_is_refused(mona: User, channel: Channel) -> None:
    ids = old_ids(40)
    write(channel, ids)
    shown = preview(mona, everything(channel))
    both = Barrier(2)

    def exclude_one(message_id: int) -> str:
        try:
            both.wait(timeout=300)
            exclude(mona, shown, message_id)
        except BadInput as error:
            return str(error)
        finally:
            connection.close()
        return "done"

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(exclude_one, ids[:2]))
    assert answers == ["The preview has changed since you opened it. Reload it and try again.", "done"]
    shown.refresh_from_db()
    left = excluded_messages(shown)
    assert (shown.manifest, len(left)) == (39, 1)
    assert manifest_hash(shown) == expected_manifest_hash(channel, [i for i in ids if (channel.pk, i) not in left])


def test_excluding_twice_has_no_further_effect(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    shown = preview(mona, everything(channel))
    once = exclude(mona, shown, ids[0])
    # A form submitted twice still contains the hash that was shown with it.
    assert manifest_hash(exclude(mona, shown, ids[0])) == manifest_hash(once)
    assert once.audit.filter(action="purge_messages_excluded").count() == 1
    back = [include_messages(once.pk, [ids[0]], moderator=mona, manifest_hash=manifest_hash(once)) for _ in range(2)]
    assert {manifest_hash(purge) for purge in back} == {manifest_hash(shown)}
    assert once.audit.filter(action="purge_messages_included").count() == 1


def test_when_all_are_excluded_nothing_is_left_to_confirm(mona: User, channel: Channel) -> None:
    ids = old_ids(3)
    write(channel, ids)
    purge = exclude(mona, preview(mona, everything(channel)), *ids)
    assert (purge.state, purge.manifest, purge.manifest_hash) == (PurgeState.NOTHING_MATCHED, 0, None)
    assert not purge.steps.exists()


def test_only_messages_of_the_manifest_can_be_excluded(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids[:10])
    write(channel, ids[10:], author=WILMA)
    purge = preview(mona, by_victor(channel))
    for foreign in (ids[15], 5):
        with pytest.raises(BadInput, match="Some of these"):
            exclude(mona, purge, ids[0], foreign)
    purge.refresh_from_db()
    assert purge.manifest == 10


def test_messages_withdrawn_meanwhile_are_not_included_again(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    purge = exclude(mona, preview(mona, everything(channel)), ids[0])
    withdraw_message(channel.pk, ids[0], actor=VICTOR)
    with pytest.raises(BadInput, match="no longer exist"):
        include_messages(purge.pk, [ids[0]], moderator=mona, manifest_hash=manifest_hash(purge))


def test_only_moderators_may_exclude_and_only_before_confirmation(mona: User, otto: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    purge = preview(mona, everything(channel))
    with pytest.raises(Forbidden):
        exclude(otto, purge, ids[0])
    confirm(mona, purge)
    with pytest.raises(BadInput, match="cannot be changed"):
        exclude(mona, purge, ids[0])
