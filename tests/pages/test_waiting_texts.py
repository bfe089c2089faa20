"""The notice with the reason of a wait."""

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


@pytest.mark.parametrize(
    ("wait", "is_amber"),
    [
        (Wait(_("Waiting behind another job"), idle_seconds=40, is_behind_job=True), False),
        (Wait(_("Waiting for the undo copy to reach disk")), False),
        (Wait(idle_seconds=40), True),
    ],
)
def test_it_is_amber_only_where_a_person_can_do_something(wait: Wait, is_amber: bool) -> None:
    shown = render_to_string("moderation/purge/_waiting.html", {"wait": wait})
    assert ('class="notice warning"' in shown) is is_amber
