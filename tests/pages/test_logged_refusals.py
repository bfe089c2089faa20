"""A refused page request is logged as one line without a traceback: it is not an error."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models.users import User

SignIn = Callable[[User], Client]


@pytest.mark.parametrize("url", ["/purges/", "/metrics", "/admin/auth/user/", "/admin/autocomplete/"])
def test_a_refusal_is_one_line(url: str, tess: User, sign_in: SignIn, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert sign_in(tess).get(url).status_code == 403
    (record,) = (record for record in caplog.records if record.name.startswith("django"))
    assert record.getMessage() == f"Forbidden: {url}"
    assert record.exc_info is None
    assert "\n" not in caplog.text.strip()
