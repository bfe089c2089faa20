"""A channel whose newest page is slow has one finding, in agreement with its state, until a measurement is below."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chatstore.domain.health import SLOW_FROM_US, ChannelState
from chatstore.models import Channel, ChannelSummary, Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import SLOW_PAGE
from chatstore.operations.health import slow_pages
from chatstore.operations.health.channel_health import read_channel_health
from chatstore.operations.health.measured import show_measured
from chatstore.operations.health.slow_pages import check_slow_pages
from chatstore.operations.health.summaries import refresh_summaries
from chatstore.store import figures
from tests.chatstore.channels import fresh_id
from tests.chatstore.recorded_statements import record_statements

BUCKET = 333


@pytest.fixture(autouse=True)
def _no_other_slow_channels() -> Iterator[None]:
    ChannelSummary.objects.filter(page_us__gte=SLOW_FROM_US).update(page_us=0)
    yield
    Finding.objects.filter(kind=SLOW_PAGE).delete()


def measure(channel: Channel, page_us: int, *, tombstones: int = 0) -> None:
    found = {"newest_page_us": page_us, "newest_page_tombstones": tombstones}
    figures.note_figures(channel.pk, BUCKET, found, source="probe", measured_at=postgres_now())
    refresh_summaries([channel.pk])


def check() -> None:
    check_slow_pages(postgres_now())


def finding_of(channel: Channel) -> Finding | None:
    return Finding.objects.open().filter(kind=SLOW_PAGE, subject=str(channel.pk)).first()


def make_channel() -> Channel:
    return Channel.objects.create(pk=fresh_id(), name="quay")


def test_a_slow_page_has_one_finding_that_follows_the_measurements() -> None:
    channel = make_channel()
    measure(channel, SLOW_FROM_US - 1)
    check()
    assert finding_of(channel) is None
    measure(channel, 20_400)
    with record_statements() as sent:
        check()
    assert sent == []
    opened = finding_of(channel)
    assert opened is not None
    assert "The newest page takes 20.4 ms to read" in opened.summary
    assert opened.channel_id == channel.pk
    measure(channel, 148_000)
    check()
    updated = finding_of(channel)
    assert updated is not None
    assert (updated.pk, updated.opened_at) == (opened.pk, opened.opened_at)
    assert "takes 148 ms" in updated.summary
    health = read_channel_health(None, channel.pk)
    assert (health.state, ChannelSummary.objects.get(pk=channel.pk).state) == (ChannelState.SLOW, ChannelState.SLOW)
    measure(channel, 2_400)
    check()
    assert finding_of(channel) is None
    assert Finding.objects.filter(kind=SLOW_PAGE, subject=str(channel.pk)).count() == 1
    assert ChannelSummary.objects.get(pk=channel.pk).state == ChannelState.HEALTHY


def test_tombstones_of_the_newest_page_make_it_slow_too() -> None:
    channel = make_channel()
    measure(channel, 9_000, tombstones=1_500)
    assert read_channel_health(None, channel.pk).state == ChannelState.SLOW
    check()
    found = finding_of(channel)
    assert found is not None
    assert "The newest page reads 1,500 tombstones" in found.summary


def test_a_measurement_on_request_opens_and_closes_it_at_once() -> None:
    channel = make_channel()
    measure(channel, 30_000)
    show_measured(channel.pk)
    assert finding_of(channel) is not None
    measure(channel, 3_000)
    show_measured(channel.pk)
    assert finding_of(channel) is None


def test_on_a_slow_cluster_only_the_slowest_have_a_finding_which_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_pages, "MAX_FINDINGS", 2)
    channels = [make_channel() for _ in range(3)]
    for channel, page_us in zip(channels, (40_000, 60_000, 50_000), strict=True):
        measure(channel, page_us)
    check()
    assert [finding_of(channel) is not None for channel in channels] == [False, True, True]
    # Another is slower now; those that have a finding are still slow.
    measure(channels[0], 90_000)
    check()
    assert [finding_of(channel) is not None for channel in channels] == [False, True, True]
    measure(channels[1], 2_000)
    check()
    assert [finding_of(channel) is not None for channel in channels] == [True, False, True]
