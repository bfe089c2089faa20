"""Fixtures for fault tests: a separate database, workers that may be killed, breakpoints."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.moderation.faults.real_workers.apart import database_apart
from tests.moderation.faults.real_workers.arrows import arrows_installed
from tests.moderation.faults.real_workers.workers import Workers


@pytest.fixture(scope="package")
def workers(_open_databases: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Workers, and a beat that polls each second, with breakpoints installed."""
    folder: Path = tmp_path_factory.mktemp("workers")
    running = Workers(folder)
    with database_apart("chatstore_faults_test"), arrows_installed():
        try:
            running.start()
            yield running
        finally:
            running.stop()
