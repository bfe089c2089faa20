"""Messages of a preview can be excluded one by one: the manifest hash changes, and exactly the rest is deleted."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.db import connection

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden
from chatstore.models import Channel
from chatstore.operations.gateway.messages import withdraw_message
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.exclusions import tick_again, untick_messages, unticked_messages
from moderation.operations.preview.purge_summary import preview_of
from moderation.operations.steps.totals import sum_of
from tests.moderation.rooms import (
    VICTOR,
    WILMA,
    buckets_of,
    by_victor,
    confirm,
    digest_by_hand,
    everything,
    ids_of,
    make_channel,
    old_ids,
    preview,
    recent_ids,
    run_to_end,
    write,
)


def digest(purge: Purge) -> bytes:
    return bytes(purge.digest or b"")


def untick(moderator: User, purge: Purge, *ids: int) -> Purge:
    return untick_messages(purge.pk, ids, moderator=moderator, digest=digest(purge))


def test_exactly_the_rest_goes(mona: User, channel: Channel) -> None:
    old, recent = old_ids(300), recent_ids(40)
    write(channel, [*old, *recent])
    purge = preview(mona, everything(channel))
    out = [old[0], old[7], recent[3]]
    purge = untick(mona, purge, *out)
    left = sorted({*old, *recent}.difference(out))
    assert (purge.manifest, digest(purge)) == (337, digest_by_hand(channel, left))
    purge = run_to_end(confirm(mona, purge))
    assert (purge.state, sum_of(purge).deleted) == (PurgeState.DONE, 337)
    assert ids_of(channel, *buckets_of(old), *buckets_of(recent)) == sorted(out)


def test_it_goes_out_of_its_own_channel_only(mona: User, channel: Channel) -> None:
    other, ids = make_channel(), old_ids(40)
    write(channel, ids[:20])
    write(other, ids[20:])
    purge = preview(mona, Selection(channel_ids=(channel.pk, other.pk), where=Author((VICTOR,))))
    purge = untick(mona, purge, ids[3])
    assert unticked_messages(purge) == [(channel.pk, ids[3])]
    run_to_end(confirm(mona, purge))
    assert (ids_of(channel, bucket_of(ids[0])), ids_of(other, bucket_of(ids[0]))) == ([ids[3]], [])


def test_the_bucket_is_planned_and_counted_again(mona: User, channel: Channel) -> None:
    ids = old_ids(300)
    write(channel, ids[:200])
    write(channel, ids[200:], author=WILMA)
    purge = preview(mona, everything(channel))
    assert preview_of(purge).per_bucket[0].plan.parts[0].way == "drop"
    shown = preview_of(untick(mona, purge, ids[0], ids[1], ids[250]))
    assert shown.per_author == [(VICTOR, 198), (WILMA, 99)]
    (bucket,) = shown.per_bucket
    assert (bucket.matched, bucket.survivors, bucket.plan.parts[0].way) == (297, 3, "ranges")
    assert shown.digest_hex == digest(purge.__class__.objects.get(pk=purge.pk)).hex()


def test_what_is_ticked_again_goes_again_with_the_digest_of_before(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    write(channel, ids)
    first = preview(mona, by_victor(channel))
    less = untick(mona, first, ids[3], ids[5])
    purge = tick_again(less.pk, [ids[3], ids[5]], moderator=mona, digest=digest(less))
    assert (purge.manifest, digest(purge), unticked_messages(purge)) == (150, digest(first), [])
    assert purge.selection == first.selection
    assert preview_of(purge).per_author == [(VICTOR, 150)]
    run_to_end(confirm(mona, purge))
    assert ids_of(channel, bucket_of(ids[0])) == []


def test_what_was_posted_since_stays_out_of_it(mona: User, channel: Channel) -> None:
    ids = old_ids(200)
    write(channel, ids[::2])
    purge = preview(mona, everything(channel))
    write(channel, ids[1::2])
    purge = untick(mona, purge, ids[0])
    assert preview_of(purge).per_bucket[0].survivors == 101
    run_to_end(confirm(mona, purge))
    assert ids_of(channel, bucket_of(ids[0])) == [ids[0], *ids[1::2]]


def test_a_stale_digest_is_refused_and_changes_nothing(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    shown = preview(mona, everything(channel))
    now = untick(mona, shown, ids[0])
    with pytest.raises(BadInput, match="has changed since"):
        untick_messages(shown.pk, [ids[1]], moderator=mona, digest=digest(shown))
    with pytest.raises(BadInput, match="has changed since"):
        tick_again(shown.pk, [ids[0]], moderator=mona, digest=digest(shown))
    now.refresh_from_db()
    assert now.manifest == 19
    with pytest.raises(BadInput, match="preview has changed"):
        confirm(mona, shown)


def test_it_is_what_a_scan_without_them_would_have_been(mona: User, channel: Channel) -> None:
    old, recent = old_ids(400), recent_ids(120)
    write(channel, [*old[::2], *recent])
    write(channel, old[1::2], author=WILMA)
    selection = Selection(channel_ids=(channel.pk,), where=Author((VICTOR,)))
    out = (old[0], old[200], recent[7])
    less = untick(mona, preview(mona, selection), *out)
    fresh = preview(mona, replace(selection, except_ids=out))
    assert (less.manifest, digest(less), less.selection) == (fresh.manifest, digest(fresh), fresh.selection)
    assert preview_of(less) == preview_of(fresh)
    assert [(step.kind, bytes(step.ids)) for step in less.steps.order_by("bucket", "kind")] == [
        (step.kind, bytes(step.ids)) for step in fresh.steps.order_by("bucket", "kind")
    ]


def test_of_two_moderators_at_once_the_second_is_told(mona: User, channel: Channel) -> None:
    ids = old_ids(40)
    write(channel, ids)
    shown = preview(mona, everything(channel))
    both = Barrier(2)

    def untick_one(message_id: int) -> str:
        try:
            both.wait(timeout=300)
            untick(mona, shown, message_id)
        except BadInput as error:
            return str(error)
        finally:
            connection.close()
        return "done"

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(untick_one, ids[:2]))
    assert answers == ["The preview has changed since you opened it. Reload it and try again.", "done"]
    shown.refresh_from_db()
    left = unticked_messages(shown)
    assert (shown.manifest, len(left)) == (39, 1)
    assert digest(shown) == digest_by_hand(channel, [i for i in ids if (channel.pk, i) not in left])


def test_twice_is_once(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    shown = preview(mona, everything(channel))
    once = untick(mona, shown, ids[0])
    # A form submitted twice still contains the hash that was shown with it.
    assert digest(untick(mona, shown, ids[0])) == digest(once)
    assert once.audit.filter(act="purge_unticked").count() == 1
    back = [tick_again(once.pk, [ids[0]], moderator=mona, digest=digest(once)) for _ in range(2)]
    assert {digest(purge) for purge in back} == {digest(shown)}
    assert once.audit.filter(act="purge_ticked_again").count() == 1


def test_when_all_are_unticked_nothing_is_left_to_confirm(mona: User, channel: Channel) -> None:
    ids = old_ids(3)
    write(channel, ids)
    purge = untick(mona, preview(mona, everything(channel)), *ids)
    assert (purge.state, purge.manifest, purge.digest) == (PurgeState.NOTHING_MATCHED, 0, None)
    assert not purge.steps.exists()


def test_only_what_is_of_the_manifest_can_be_unticked(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids[:10])
    write(channel, ids[10:], author=WILMA)
    purge = preview(mona, by_victor(channel))
    for foreign in (ids[15], 5):
        with pytest.raises(BadInput, match="Some of these"):
            untick(mona, purge, ids[0], foreign)
    purge.refresh_from_db()
    assert purge.manifest == 10


def test_what_its_author_withdrew_meanwhile_is_not_ticked_again(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    purge = untick(mona, preview(mona, everything(channel)), ids[0])
    withdraw_message(channel.pk, ids[0], actor=VICTOR)
    with pytest.raises(BadInput, match="no longer exist"):
        tick_again(purge.pk, [ids[0]], moderator=mona, digest=digest(purge))


def test_only_a_moderator_may_and_only_before_it_is_confirmed(mona: User, otto: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    purge = preview(mona, everything(channel))
    with pytest.raises(Forbidden):
        untick(otto, purge, ids[0])
    confirm(mona, purge)
    with pytest.raises(BadInput, match="cannot be changed"):
        untick(mona, purge, ids[0])
