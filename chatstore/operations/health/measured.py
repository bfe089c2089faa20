"""Show what was measured on request at once, before the monitor does: when the run ends, every page agrees."""

from __future__ import annotations

import logging

from chatstore.domain.errors import StoreUnavailable
from chatstore.models import ChannelSummary
from chatstore.operations.health.heavy_buckets import check_channel
from chatstore.operations.health.slow_pages import check_slow_page
from chatstore.operations.health.summaries import refresh_summaries

logger = logging.getLogger(__name__)


def show_measured(channel_id: int) -> None:
    """Update a channel's row in the table of all channels, its day, and its findings. The caller has marked the row.

    If a store is unavailable, the monitor does it later.
    """
    try:
        # Channels that only messages name have no row.
        refresh_summaries(ChannelSummary.objects.filter(pk=channel_id).values_list("pk", flat=True))
        check_channel(channel_id)
        check_slow_page(channel_id)
    except StoreUnavailable as error:
        logger.warning("could not update the figures of channel %s yet: %s", channel_id, error)
