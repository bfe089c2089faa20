"""The stage for faults: a database apart, workers that may be killed, moves that can be held."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.moderation.faults.real_workers.apart import database_apart
from tests.moderation.faults.real_workers.arrows import arrows_installed
from tests.moderation.faults.real_workers.workers import Workers


@pytest.fixture(scope="package")
def workers(_open_databases: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Workers and beat, looking each second, whose moves can be stopped."""
    folder: Path = tmp_path_factory.mktemp("workers")
    running = Workers(folder)
    with database_apart("chatstore_faults_test"), arrows_installed():
        try:
            running.start()
            yield running
        finally:
            running.stop()
