"""Conditions under which the figures were measured."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings

from tests.bench.baseline import bare_session
from tests.bench.bench_stack import WORKERS


def describe_conditions() -> dict[str, Any]:
    """Return versions, replication, consistency, throttling settings and cores."""
    version = bare_session().execute("SELECT release_version FROM system.local").one()[0]
    return {
        "cassandra": version,
        "nodes": len(bare_session().cluster.metadata.all_hosts()),
        "replication": settings.CASSANDRA["replication"],
        "consistency": "LOCAL_QUORUM",
        "commitlog_sync_period_ms": settings.CASSANDRA["commitlog_sync_period_ms"],
        "cores": os.cpu_count(),
        "purge_workers": WORKERS,
        "purge_rest": settings.PURGE_THROTTLE_FACTOR,
        "statements_per_second": settings.PURGE_STATEMENTS_PER_SECOND,
    }
