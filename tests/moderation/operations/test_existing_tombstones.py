"""Foreign tombstones in a bucket count against its budget, with the count of the preview or a new one."""

from django.conf import settings

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import figures
from moderation.models import Purge, Step
from tests.chatstore.channels import delete_rows
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    by_victor,
    confirm,
    make_channel,
    old_ids,
    preview,
    run_to_end,
    write,
)

GONE = 40
"""Rows that another program deletes one by one after the preview."""


def previewed(moderator: User) -> tuple[Channel, Purge, list[int]]:
    """Preview a purge of two ranges (four tombstones): Victor's messages with Wilma's after each."""
    channel, ids = make_channel(), old_ids(500)
    for start, end, author in ((0, 150, VICTOR), (150, 300, WILMA), (300, 450, VICTOR), (450, 500, WILMA)):
        write(channel, ids[start:end], author=author)
    return channel, preview(moderator, by_victor(channel)), ids


def tombstones_of(channel: Channel, bucket: int) -> int | None:
    return figures.read_figures(channel.id)[bucket]["tombstones"].value


def test_a_bucket_without_new_deletes_keeps_its_preview_count(mona: User) -> None:
    channel, purge, ids = previewed(mona)
    run_to_end(confirm(mona, purge))
    assert Step.objects.get(purge=purge).tombstones == 4
    assert tombstones_of(channel, bucket_of(ids[0])) == 4


def test_deletes_logged_since_the_preview_are_counted_again(mona: User) -> None:
    channel, purge, ids = previewed(mona)
    delete_rows(channel.id, ids[450 : 450 + GONE])
    note_deletes(channel.id, bucket_of(ids[0]), GONE)
    run_to_end(confirm(mona, purge))
    assert Step.objects.get(purge=purge).tombstones == GONE + 4


def test_unlogged_deletes_show_up_in_the_verifying_read(mona: User) -> None:
    channel, purge, ids = previewed(mona)
    delete_rows(channel.id, ids[450 : 450 + GONE])
    run_to_end(confirm(mona, purge))
    assert tombstones_of(channel, bucket_of(ids[0])) == GONE + 4


def test_a_bucket_pushed_over_budget_by_unlogged_deletes_has_a_rewrite_queued(mona: User) -> None:
    budget: int = settings.PURGE_TOMBSTONE_BUDGET
    channel, ids = make_channel(), old_ids(budget + 600)
    write(channel, ids[:300])
    write(channel, ids[300:], author=WILMA)
    purge = preview(mona, by_victor(channel))
    delete_rows(channel.id, ids[400 : 400 + budget])
    run_to_end(confirm(mona, purge))
    assert Purge.objects.filter(is_rewrite=True, steps__channel_id=channel.id).count() == 1
