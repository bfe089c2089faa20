"""The log names statements that a caller had to wait for, not those that waited for the caller."""

from __future__ import annotations

import logging
import time

import pytest

from chatstore.store import cassandra

_READ = "SELECT live FROM bucket_ledger WHERE channel_id = ? AND bucket = ?"
PAUSE_SECONDS = 0.3


def test_a_statement_that_was_waited_for_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cassandra, "SLOW_SECONDS", 0)
    with caplog.at_level(logging.WARNING, logger=cassandra.__name__):
        cassandra.execute(_READ, (1, 1))
    assert _READ in caplog.text


def test_results_that_were_there_before_they_were_asked_for_are_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    results = cassandra.execute_window((_READ, (1, bucket)) for bucket in range(16))
    next(results)
    time.sleep(PAUSE_SECONDS)
    monkeypatch.setattr(cassandra, "SLOW_SECONDS", PAUSE_SECONDS)
    with caplog.at_level(logging.WARNING, logger=cassandra.__name__):
        assert list(results) == [[]] * 15
    assert not caplog.messages
