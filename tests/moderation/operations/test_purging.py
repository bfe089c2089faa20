"""A purge deletes exactly the previewed messages and reports it."""

from pytest_django import Settings

from chatstore.domain.live import EMPTY
from chatstore.domain.snowflakes import time_of
from chatstore.models.users import User
from chatstore.store import ledger
from chatstore.store.reading import reader
from moderation.domain.states import PurgeState
from moderation.operations.preview.purge_summary import describe_plan, preview_of, progress_of, purge_as_json
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.totals import totals_of
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    buckets_of,
    by_victor,
    choose,
    confirm,
    everything,
    expected_manifest_hash,
    ids_of,
    make_channel,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    write,
)


def test_a_purge_deletes_only_the_chosen_author(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(400)
    victor, wilma = ids[:100] + ids[150:350], ids[100:150] + ids[350:]
    write(channel, victor)
    write(channel, wilma, author=WILMA)
    purge = purge_now(mona, by_victor(channel))
    assert purge.state == PurgeState.DONE
    assert totals_of(purge).deleted == 300
    assert ids_of(channel, *buckets_of(ids)) == sorted(wilma)
    assert [step.strategy for step in purge.steps.all()] == ["ranges"]


def test_a_sealed_bucket_is_dropped_and_the_ledger_records_it(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(300)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    assert [step.strategy for step in purge.steps.all()] == ["drop"]
    assert ids_of(channel, *buckets_of(ids)) == []
    assert ledger.read_ledger(channel.id) == [(buckets_of(ids)[0], EMPTY)]
    assert reader.read_page(channel.id).messages == []


def test_a_few_messages_are_deleted_by_row_at_once(mona: User) -> None:
    channel = make_channel()
    ids = recent_ids(60)
    write(channel, ids)
    purge = purge_now(mona, choose(channel.id, message_ids=tuple(ids[10:20])))
    assert [step.strategy for step in purge.steps.all()] == ["rows"]
    assert ids_of(channel, *buckets_of(ids)) == ids[:10] + ids[20:]
    assert purge_as_json(purge)["seconds"] < 5  # type: ignore[operator]


def test_the_rest_of_a_huge_raid_waits_until_it_is_due(mona: User, settings: Settings) -> None:
    settings.PURGE_LATER_TOMBSTONES = 250
    channel = make_channel()
    ids = recent_ids(900)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    total = totals_of(purge)
    assert purge.state == PurgeState.WAITING
    assert (total.deleted, total.later, total.left) == (250, 650, 650)
    assert "hour" in purge.wait_reason
    assert ids_of(channel, *buckets_of(ids)) == ids[:650]


def test_later_posts_do_not_change_the_manifest_hash(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(200)
    write(channel, ids[:150])
    purge = preview(mona, everything(channel))
    assert bytes(purge.manifest_hash or b"") == expected_manifest_hash(channel, ids[:150])
    write(channel, ids[150:])
    confirm(mona, purge)
    purge = run_purge(purge.id)
    assert ids_of(channel, *buckets_of(ids)) == ids[150:]
    assert totals_of(purge).deleted == 150


def test_an_empty_match_is_reported_and_is_not_a_success(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(5), author=WILMA)
    purge = preview(mona, by_victor(channel))
    assert purge.state == PurgeState.NOTHING_MATCHED
    assert purge.manifest_hash is None


def test_the_preview_shows_how_many_survivors_are_rewritten(mona: User) -> None:
    channel = make_channel()
    mixed = old_ids(1400)
    write(channel, mixed[::2])
    write(channel, mixed[1::2], author=WILMA)
    shown = preview_of(preview(mona, by_victor(channel)))
    assert shown.count == 700
    assert shown.per_bucket[0].plan.rewritten == 450
    assert describe_plan(shown).startswith("1 period rewritten (450 messages kept). Operators: at most ")


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


def test_the_totals_add_up_at_every_point(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(120))
    purge = preview(mona, everything(channel))
    for state in (purge, confirm(mona, purge), run_purge(purge.id)):
        state.refresh_from_db()
        total = progress_of(state).totals
        assert total.deleted + total.already_gone + total.held + total.failed + total.left == total.manifest == 120
