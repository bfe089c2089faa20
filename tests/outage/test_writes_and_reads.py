"""A node dies: nothing is lost, nothing is reported as empty, and everything continues afterwards."""

import time

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.snowflakes import first_id_at
from chatstore.models import Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.gateway import messages
from chatstore.operations.monitoring.checks import NODE_DOWN, check_nodes
from chatstore.store import withdrawn
from chatstore.store.reading.reader import read_page
from tests.chatstore.channels import VICTOR, ids_of, now_ms
from tests.outage.conftest import DOWN, Outage

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def test_operations_given_up_in_an_outage_succeed_when_retried(outage: Outage) -> None:
    kept = outage.before
    channel_id, lost_id = kept.channel_id, first_id_at(now_ms())
    check_nothing_is_lost(channel_id, kept.message_id, lost_id)

    check_nodes(postgres_now())
    assert open_findings() == [DOWN]
    outage.end()
    check_nodes(postgres_now())
    assert open_findings() == []

    messages.post_message(channel_id, author_id=VICTOR, content="during", message_id=lost_id)
    assert set(ids_of(read_page(channel_id).messages)) == {kept.message_id, lost_id}
    assert messages.withdraw_message(channel_id, kept.message_id, actor=VICTOR)
    assert ids_of(read_page(channel_id).messages) == [lost_id]
    assert kept.message_id in withdrawn.read_withdrawals(channel_id, bucket_of(kept.message_id)).certain


def open_findings() -> list[str]:
    found = Finding.objects.filter(kind=NODE_DOWN, closed_at=None)
    return list(found.values_list("subject", flat=True))


def check_nothing_is_lost(channel_id: int, kept_id: int, lost_id: int) -> None:
    """Check that LOCAL_QUORUM can neither read nor write with one of two replicas gone."""
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="abandoned"):
        messages.post_message(channel_id, author_id=VICTOR, content="during", message_id=lost_id)
    assert time.monotonic() - began < messages.WRITE_DEADLINE_SECONDS + 1
    with pytest.raises(StoreUnavailable):
        messages.withdraw_message(channel_id, kept_id, actor=VICTOR)
    with pytest.raises(StoreUnavailable):
        messages.edit_message(channel_id, kept_id, actor=VICTOR, content="x")
    with pytest.raises(StoreUnavailable):
        read_page(channel_id)
