"""One web server with a worker, and one Chromium, for all browser tests."""

from collections.abc import Iterator

import pytest

from tests.pages.serving import Site, serve, share_browser


@pytest.fixture(scope="package")
def site(_open_databases: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serve(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture(scope="package", autouse=True)
def _one_browser() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, share_browser():
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield
