"""The sentence with the reason of a wait."""

import datetime as dt

import pytest
from django.template.loader import render_to_string

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.texts import gettext_lazy as _
from moderation.operations.purging.wait_reasons import Wait, waiting_for

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("until", [None, dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)])
def test_an_error_that_is_waited_for_has_one_full_stop(until: dt.datetime | None) -> None:
    wait = Wait(waiting_for(StoreUnavailable(_("A replica did not answer."))), until=until)
    html = " ".join(render_to_string("moderation/purge/_waiting.html", {"wait": wait}).split())
    assert "Waiting: A replica did not answer" in html
    assert ".." not in html
    assert "answer. (" not in html
