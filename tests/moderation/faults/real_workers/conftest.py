"""Fixtures for fault tests: a separate database, workers that may be killed, breakpoints."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.moderation.faults.real_workers.breakpoints import breakpoints_installed
from tests.moderation.faults.real_workers.separate_database import separate_database
from tests.moderation.faults.real_workers.workers import Workers


@pytest.fixture(scope="package")
def workers(_open_databases: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Workers, and a beat that polls each second, with breakpoints installed."""
    folder: Path = tmp_path_factory.mktemp("workers")
    running = Workers(folder)
    with separate_database("chatstore_faults_test"), breakpoints_installed():
        try:
            running.start()
            yield running
        finally:
            running.stop()
