"""The plan of a purge by period: a row for each bucket, with its channel if there are several."""

from __future__ import annotations

import datetime as dt
import re

from django.template import Context, Template

from chatstore.models import Channel, Guild
from moderation.views.purge_preview import BucketRow

TEMPLATE = Template("{% load purge_rows %}{% period_rows rows %}")
HARBOUR = Guild(pk=1, name="Harbour")
GENERAL, HOSTILE = (Channel(pk=n, guild=HARBOUR, name=name) for n, name in enumerate(("general", "<b>\u202e"), 2))


def row(channel: Channel | None, *, survivors: int | None = 20) -> BucketRow:
    first = dt.date(2024, 3, 11)
    methods = ["2 ranges", "1,500 individually, right away"]
    return BucketRow(channel, first, first + dt.timedelta(days=9), 1_502, survivors, methods, 1_700)


def render(*rows: BucketRow, channel_count: int, operates: bool = False) -> str:
    perms = {"chatstore": {"view_finding": operates}}
    return TEMPLATE.render(Context({"rows": rows, "channel_count": channel_count, "perms": perms}))


def cells(html: str) -> list[list[str]]:
    """Return the texts of the cells of each row."""
    return [
        [" ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in re.findall(r"<td[^>]*>(.*?)</td>", part, re.DOTALL)]
        for part in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    ]


def test_a_row_says_when_how_many_and_how() -> None:
    found = cells(render(row(GENERAL), row(GENERAL, survivors=None), channel_count=1))
    methods = "2 ranges 1,500 individually, right away"
    assert found == [
        ["11–20 March 2024", "1,502", "20", methods],
        ["11–20 March 2024", "1,502", "—", methods],
    ]


def test_of_several_channels_each_row_names_its_own_unless_the_viewer_may_not_open_it() -> None:
    found = cells(render(row(GENERAL), row(None), row(GENERAL), channel_count=3))
    assert [one[0] for one in found] == ["#general (Harbour)", "a channel you cannot open", "#general (Harbour)"]


def test_names_are_escaped_and_their_hidden_characters_are_spelt_out() -> None:
    html = render(row(HOSTILE), channel_count=2)
    assert "<bdi>#&lt;b&gt;[RLO] (Harbour)</bdi>" in html


def test_operators_see_tombstones_too() -> None:
    assert cells(render(row(GENERAL), channel_count=1, operates=True))[0][-1] == "1,700"
