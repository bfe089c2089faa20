"""A page that reads several buckets scans the tombstones of all of them, each at most as many as its own figure."""

from __future__ import annotations

from chatstore.domain.buckets import bucket_of
from chatstore.domain.health import ChannelState
from chatstore.models import ChannelSummary
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health import probes
from chatstore.operations.health.channel_health import read_channel_health
from chatstore.operations.health.summaries import known_of, refresh_summaries
from chatstore.store import figures
from moderation.presentation.channel_states import describe_state
from tests.moderation.channels import WILMA, by_victor, make_channel, old_ids, purge_now, write

BUCKETS_AGO = (2, 3, 4)
"""In its first hour, a bucket's predecessor is not sealed yet."""


def test_a_page_of_several_buckets_reads_no_more_tombstones_than_all_of_them_can_have(mona: User) -> None:
    channel, buckets = make_channel(), []
    for buckets_ago in BUCKETS_AGO:
        ids = old_ids(48, buckets_ago=buckets_ago)
        buckets.append(bucket_of(ids[0]))
        write(channel, ids[::4], author=WILMA)
        write(channel, [one for one in ids if one not in ids[::4]][::2])
    purge_now(mona, by_victor(channel))
    # A second purge of the same buckets adds to the bound of the first.
    for buckets_ago in BUCKETS_AGO:
        ids = old_ids(48, buckets_ago=buckets_ago)
        write(channel, [one for one in ids if one not in ids[::4]][1::2])
    purge_now(mona, by_victor(channel))
    noted = figures.read_figures(channel.pk)
    bounds = {bucket: noted[bucket]["tombstones"] for bucket in buckets}
    probes.probe_channel(channel.pk, now=postgres_now())
    known = read_channel_health(None, channel.pk).known
    assert known.page_tombstones is not None
    assert max(figure.value for figure in bounds.values()) < known.page_tombstones
    assert known.page_tombstones <= sum(figure.value for figure in bounds.values())
    # Otherwise it would seem that the page reads more than the worst bucket has.
    assert known.page_buckets == len(BUCKETS_AGO)
    assert f"{known.page_tombstones}\u00a0tombstones from 3\u00a0buckets in" in describe_state(
        ChannelState.HEALTHY, known
    )
    refresh_summaries([channel.pk])
    assert known_of(ChannelSummary.objects.get(pk=channel.pk)) == known
    for bucket in buckets:
        probes.probe_bucket(channel.pk, bucket, whole=True)
        counted = figures.read_figures(channel.pk)[bucket]["tombstones"]
        assert counted.source == "probe"
        assert counted.value <= bounds[bucket].value
