"""A purge deletes exactly the previewed messages and reports it."""

from django.contrib.auth.models import User
from pytest_django import Settings

from chatstore.domain.live import NOTHING
from chatstore.domain.snowflakes import time_of
from chatstore.store import ledger
from chatstore.store.reading import reader
from moderation.domain.states import PurgeState
from moderation.operations.preview.purge_summary import preview_of, progress_of, say_plan, summary_of
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.totals import sum_of
from tests.moderation.rooms import (
    VICTOR,
    WILMA,
    buckets_of,
    by_victor,
    choose,
    confirm,
    digest_by_hand,
    everything,
    ids_of,
    make_channel,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    write,
)


def test_it_removes_one_author_and_nobody_else(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(400)
    victor, wilma = ids[:100] + ids[150:350], ids[100:150] + ids[350:]
    write(channel, victor)
    write(channel, wilma, author=WILMA)
    purge = purge_now(mona, by_victor(channel))
    assert purge.state == PurgeState.DONE
    assert sum_of(purge).deleted == 300
    assert ids_of(channel, *buckets_of(ids)) == sorted(wilma)
    assert [step.how for step in purge.steps.all()] == ["ranges"]


def test_it_drops_a_sealed_bucket_whole_and_the_ledger_says_so(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(300)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    assert [step.how for step in purge.steps.all()] == ["drop"]
    assert ids_of(channel, *buckets_of(ids)) == []
    assert ledger.read_ledger(channel.id) == [(buckets_of(ids)[0], NOTHING)]
    assert reader.read_page(channel.id).messages == []


def test_a_few_messages_go_by_row_at_once(mona: User) -> None:
    channel = make_channel()
    ids = recent_ids(60)
    write(channel, ids)
    purge = purge_now(mona, choose(channel.id, message_ids=tuple(ids[10:20])))
    assert [step.how for step in purge.steps.all()] == ["rows"]
    assert ids_of(channel, *buckets_of(ids)) == ids[:10] + ids[20:]
    assert summary_of(purge)["seconds"] < 5  # type: ignore[operator]


def test_the_rest_of_an_enormous_raid_waits_for_its_hour(mona: User, settings: Settings) -> None:
    settings.PURGE_LATER_TOMBSTONES = 250
    channel = make_channel()
    ids = recent_ids(900)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    total = sum_of(purge)
    assert purge.state == PurgeState.WAITING
    assert (total.deleted, total.later, total.left) == (250, 650, 650)
    assert "hour" in purge.wait_reason
    assert ids_of(channel, *buckets_of(ids)) == ids[:650]


def test_the_manifest_keeps_its_digest_whatever_is_posted_later(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(200)
    write(channel, ids[:150])
    purge = preview(mona, everything(channel))
    assert bytes(purge.digest or b"") == digest_by_hand(channel, ids[:150])
    write(channel, ids[150:])
    confirm(mona, purge)
    purge = run_purge(purge.id)
    assert ids_of(channel, *buckets_of(ids)) == ids[150:]
    assert sum_of(purge).deleted == 150


def test_nothing_matched_is_said_and_is_no_success(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(5), author=WILMA)
    purge = preview(mona, by_victor(channel))
    assert purge.state == PurgeState.NOTHING_MATCHED
    assert purge.digest is None


def test_the_preview_says_how_many_survivors_are_written_again(mona: User) -> None:
    channel = make_channel()
    mixed = old_ids(1400)
    write(channel, mixed[::2])
    write(channel, mixed[1::2], author=WILMA)
    shown = preview_of(preview(mona, by_victor(channel)))
    assert shown.count == 700
    assert shown.per_bucket[0].plan.rewritten == 450
    assert say_plan(shown).startswith("1 period rewritten (450 messages kept). Operators: at most ")


def test_the_preview_counts_by_bucket_and_author(mona: User) -> None:
    channel = make_channel()
    early, late = old_ids(30, buckets_ago=6), old_ids(20, buckets_ago=2)
    write(channel, early)
    write(channel, late, author=WILMA)
    shown = preview_of(preview(mona, everything(channel)))
    assert [(bucket.bucket, bucket.matched) for bucket in shown.per_bucket] == [
        (buckets_of(late)[0], 20),
        (buckets_of(early)[0], 30),
    ]
    assert shown.per_author == [(VICTOR, 30), (WILMA, 20)]
    assert (shown.oldest, shown.newest) == (time_of(early[0]), time_of(late[-1]))


def test_the_sum_adds_up_at_every_moment(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(120))
    purge = preview(mona, everything(channel))
    for state in (purge, confirm(mona, purge), run_purge(purge.id)):
        state.refresh_from_db()
        total = progress_of(state).sum
        assert total.deleted + total.already_gone + total.held + total.failed + total.left == total.manifest == 120
