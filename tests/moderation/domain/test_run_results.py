"""The results of a run read as a line: counts first, then the other values, in lower case."""

from __future__ import annotations

import datetime as dt

from moderation.presentation.formats import format_datetime
from moderation.templatetags.maintenance_tags import dated_ago, result_name, result_summary


def test_counts_come_before_other_values() -> None:
    result = {"nodes": 2, "replicas are": "in sync", "failed": 0, "tombstones on 10.0.0.1": 61_204, "ranges": 56}
    assert result_summary(result) == (
        "2\u00a0nodes, 56\u00a0ranges, none failed; state of the replicas: in sync; tombstones on 10.0.0.1: 61,204"
    )


def test_the_beginning_of_a_round_is_words() -> None:
    result = {"nodes left": 0, "round began": {"datetime": "2026-11-26T15:32:00+00:00"}}
    assert result_summary(result).startswith("no nodes left for the next run; round began ")


def test_zeros_and_repeated_numbers_are_left_out() -> None:
    night = {"nodes": 2, "nodes left": 0, "nodes repaired": 2, "buckets measured": 0}
    assert result_summary(night) == "no nodes left for the next run, 2\u00a0nodes repaired"
    assert result_summary(night | {"nodes repaired": 1, "nodes left": 1}) == (
        "2\u00a0nodes, 1\u00a0node left for the next run, 1\u00a0node repaired"
    )
    assert result_summary({"closed": 0, "copies renewed": 0}) == "0\u00a0closed, 0\u00a0copies renewed"


def test_a_heading_begins_with_a_capital_but_the_name_of_a_setting_does_not() -> None:
    names = ("nodes left", "tombstones on 10.0.0.1", "of_an_older_version", "gc_grace")
    assert [result_name(name) for name in names] == [
        "Nodes left for the next run",
        "Tombstones on 10.0.0.1",
        "Of an older version",
        "gc_grace",
    ]


def test_the_end_of_a_run_has_its_date_and_its_age_until_it_is_old() -> None:
    now = dt.datetime.now(dt.UTC)
    recent, old = now - dt.timedelta(hours=3, minutes=1), now - dt.timedelta(days=40)
    assert f">{format_datetime(recent)} (3 hours ago)</time>" in dated_ago(recent)
    assert f">{format_datetime(old)}</time>" in dated_ago(old)
