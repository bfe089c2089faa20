"""Fixtures of the tests of imports."""

import pytest

from chatstore.operations.importing import completion
from chatstore.store import ledger


@pytest.fixture(autouse=True)
def _short_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep ledger rows for a tenth of a second: each import waits until no page uses older ones."""
    for module in (ledger, completion):
        monkeypatch.setattr(module, "CACHE_SECONDS", 0.1)
