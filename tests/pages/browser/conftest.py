"""One web server with a worker for all browser tests."""

from collections.abc import Iterator

import pytest

from tests.pages.serving import Site, serve


@pytest.fixture(scope="package")
def site(_open_databases: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serve(tmp_path_factory.mktemp("site")) as running:
        yield running
