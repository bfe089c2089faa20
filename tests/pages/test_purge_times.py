"""Strips that show when the messages of a purge were posted: linear, by channel, from years down to minutes."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client

from chatstore.domain.buckets import bucket_of, bucket_window
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS, MINUTE_MS
from chatstore.domain.snowflakes import make_snowflake, unix_ms
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.packing import pack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.preview import bucket_strip, time_strips
from moderation.operations.preview.bucket_strip import PurgeMap
from moderation.operations.preview.manifest_summary import summary_of
from moderation.operations.purging.execution import WRITTEN_AGAIN
from moderation.operations.purging.lifecycle import discard_preview
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    by_victor,
    confirm,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.moderation.stored_sums import store_sums
from tests.pages.reading import read_html
from tests.pages.restoring import restore

SignIn = Callable[[User], Client]


def raid_start() -> int:
    """Return the Unix milliseconds of a full hour in a sealed bucket, in the middle of a day."""
    begin, _ = bucket_window(bucket_of(old_ids(1)[0]))
    return unix_ms(begin) + 5 * DAY_MS + 12 * HOUR_MS


def raid_ids(minutes: int, per_minute: int, *, worker: int = 0) -> list[int]:
    start = raid_start()
    return [
        make_snowflake(start + minute * MINUTE_MS + n * 500, worker=worker)
        for minute in range(minutes)
        for n in range(per_minute)
    ]


def bars_of(html: str) -> list[list[int]]:
    """Return the numbers of messages of each bar, strip by strip."""
    strips = re.findall(r'class="strip time-strip".*?</svg>', html, re.DOTALL)
    return [[int(n) for n in re.findall(r"<title>[^<]*: (\d+) messages?</title>", strip)] for strip in strips]


def current_of(html: str) -> str:
    (label,) = re.findall(r'id="zoom-(\w+)"[^>]*aria-current="true"', html)
    return str(label)


def test_a_raid_of_five_minutes_is_five_bars(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, raid_ids(5, 20))
    html = read_html(sign_in(mona), f"/purges/{preview(mona, by_victor(channel)).pk}/")
    assert bars_of(html) == [[20] * 5]
    assert current_of(html) == "all"
    assert '<span class="strip-top" aria-hidden="true">20</span>' in html
    assert "20 in the tallest bar" in " ".join(html.split())


def test_all_messages_are_drawn_if_they_are_of_several_periods(mona: User, sign_in: SignIn) -> None:
    channel, client = make_channel(), sign_in(mona)
    write(channel, raid_ids(5, 20))
    heading = "All messages in the channel"
    assert heading not in read_html(client, f"/purges/{preview(mona, by_victor(channel)).pk}/")
    write(channel, old_ids(4, buckets_ago=60), author=WILMA)
    html = read_html(client, f"/purges/{preview(mona, by_victor(channel)).pk}/")
    assert heading in html
    top = '<p class="strip-top"><span class="sr">Top of the axis:</span> 100</p>'
    assert top in " ".join(html.split())


def test_its_links_lead_from_years_to_the_minutes_of_the_raid(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, [*old_ids(4, buckets_ago=60), *raid_ids(5, 20)])
    purge, client = purge_now(mona, by_victor(channel)), sign_in(mona)
    path, levels = f"/purges/{purge.pk}/", []
    html = read_html(client, path)
    assert max(bars_of(html)[0]) >= 100
    while (level := current_of(html)) not in levels:
        levels.append(level)
        strip = html[html.index("time-strip") :]
        bars = re.findall(r'<a href="(\?[^"]*)#times"[^>]*>\s*<title>[^<]*: (\d+) message', strip)
        link = max(bars, key=lambda bar: int(bar[1]))[0]
        html = read_html(client, path + link.replace("&amp;", "&"))
    assert levels == ["all", "year", "month", "day", "hour"]
    assert bars_of(html) == [[20] * 5]


def test_each_channel_has_a_row_those_beyond_a_limit_on_request(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels = [make_channel() for _ in range(3)]
    for number, channel in enumerate(channels):
        write(channel, raid_ids(2, 9 - number, worker=number))
    selection = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))
    purge, client = preview(mona, selection), sign_in(mona)
    assert bars_of(read_html(client, f"/purges/{purge.pk}/")) == [[9, 9], [8, 8], [7, 7]]
    monkeypatch.setattr("moderation.views.purge_times.MAX_ROWS", 2)
    html = read_html(client, f"/purges/{purge.pk}/")
    assert bars_of(html) == [[9, 9], [8, 8]]
    link = re.search(r'href="([^"#]*)#times">\s*Show 1 more channel\s*</a>', html)
    assert link is not None
    html = read_html(client, f"/purges/{purge.pk}/{unescape(link[1])}")
    assert bars_of(html) == [[9, 9], [8, 8], [7, 7]]
    assert "more channel" not in html
    assert re.search(r'href="\?zoom=hour&amp;at=\d+&amp;rows=0#times"', html)


def test_all_channels_have_a_row_on_pages(mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("moderation.operations.preview.manifest_summary", "moderation.views.purge_times"):
        monkeypatch.setattr(f"{module}.MAX_CHANNELS", 2)
    monkeypatch.setattr("moderation.views.purge_times.MAX_ROWS", 1)
    channels = [make_channel() for _ in range(5)]
    for number, channel in enumerate(channels):
        write(channel, raid_ids(1, 9 - number, worker=number))
    selection = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))
    purge, client = preview(mona, selection), sign_in(mona)
    path, links, drawn, places = (
        f"/purges/{purge.pk}/",
        ["Show 1 more channel", "Next channels", "Next channels"],
        [],
        [],
    )
    for label in (*links, ""):
        html = read_html(client, path)
        drawn.append([count for bars in bars_of(html) for count in bars])
        places += re.findall(r"Channels (\d+–\d+ of \d+)", html)
        if label:
            link = re.search(rf'href="([^"#]*)#times">\s*{label}\s*</a>', html)
            assert link is not None
            path = f"/purges/{purge.pk}/{unescape(link[1])}"
    assert drawn == [[9], [9, 8], [7, 6], [5]]
    assert places == ["1–1 of 5", "1–2 of 5", "3–4 of 5", "5–5 of 5"]
    assert ">Previous channels</a>" in html
    assert ">Next channels</a>" not in html
    # Beyond the end is the last page; what is no number, the largest channels.
    for rows, expected in (("99999999999999999999", [5]), ("-7", [9, 8]), ("all", [9])):
        html = read_html(client, f"/purges/{purge.pk}/?rows={rows}")
        assert [count for bars in bars_of(html) for count in bars] == expected


def parts_of(html: str) -> list[list[list[str]]]:
    """Return the parts of each bar, from the top, strip by strip."""
    strips = re.findall(r'class="strip time-strip".*?</svg>', html, re.DOTALL)
    return [[re.findall(r'class="part is-([\w-]+)"', bar) for bar in strip.split("</a>")[:-1]] for strip in strips]


def legend_of(html: str) -> list[str]:
    foot = html[html.index('class="strip time-axis"') :]
    return re.findall(r'class="part is-[\w-]+"[^>]*>\s*</svg>\s*([\w ]+?)\s*</span>', foot)


def test_what_is_restored_is_told_from_what_is_still_deleted(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, raid_ids(2, 3))
    purge, client = preview(mona, by_victor(channel)), sign_in(mona)
    path = f"/purges/{purge.pk}/"
    html = read_html(client, path)
    assert (parts_of(html), legend_of(html)) == ([[["to-delete"]] * 2], ["to delete"])
    run_to_end(confirm(mona, purge))
    html = read_html(client, path)
    assert (parts_of(html), legend_of(html)) == ([[["deleted"]] * 2], ["deleted"])
    some = UndoPart(message_ids=tuple(raid_ids(2, 3)[:2]))
    request_undo(purge.pk, moderator=mona, part=some, reason="Appeal accepted")
    run_purge(purge.pk)
    html = read_html(client, path)
    assert (parts_of(html), legend_of(html)) == ([[["deleted", "restored"], ["deleted"]]], ["deleted", "restored"])
    assert "3 messages (1 deleted, 2 restored)" in html
    restore(client, f"{path}undo/")
    run_purge(purge.pk)
    html = read_html(client, path)
    assert (parts_of(html), legend_of(html)) == ([[["restored"]] * 2], ["restored"])
    assert bars_of(html) == [[3, 3]]


def test_statuses_of_messages_that_are_not_counted_one_by_one_are_told_apart(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = make_channel()
    write(channel, raid_ids(4, 10))
    purge = purge_now(mona, by_victor(channel))
    request_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=tuple(raid_ids(4, 10)[:20])), reason="An appeal")
    run_purge(purge.pk)
    monkeypatch.setattr(time_strips, "MAX_IDS", 39)
    html = read_html(sign_in(mona), f"/purges/{purge.pk}/")
    assert set(map(tuple, parts_of(html)[0])) == {("deleted", "restored")}
    assert "40 messages" in html


def test_nothing_of_a_discarded_preview_is_to_be_deleted(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, raid_ids(1, 3))
    purge, client = preview(mona, by_victor(channel)), sign_in(mona)
    discard_preview(purge.pk, moderator=mona)
    html = read_html(client, f"/purges/{purge.pk}/")
    assert (parts_of(html), legend_of(html)) == ([[["kept"]]], ["not deleted"])
    assert "is-to-delete" not in html
    listed = read_html(client, f"/purges/{purge.pk}/messages/")
    assert "3 messages included" in listed
    assert listed.count('<div class="entry kept">') == listed.count('<span class="outcome">not deleted</span>') == 3


def test_what_a_hold_keeps_is_not_drawn_as_to_be_deleted(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, raid_ids(1, 3))
    purge = confirm(mona, preview(mona, by_victor(channel)))
    place_hold(HoldRequest(author=str(VICTOR), channel=str(channel.pk)), reason="case 1", actor=mona)
    run_to_end(purge)
    html = read_html(sign_in(mona), f"/purges/{purge.pk}/")
    assert (parts_of(html), legend_of(html)) == ([[["kept"]]], ["not deleted"])
    assert "is-to-delete" not in html


@pytest.mark.parametrize("max_ids", [time_strips.MAX_IDS, 0])
def test_what_failed_is_drawn_as_such(
    mona: User, sign_in: SignIn, max_ids: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_strips, "MAX_IDS", max_ids)
    purge = purge_with_failures(mona)
    html = read_html(sign_in(mona), f"/purges/{purge.pk}/")
    assert legend_of(html) == ["deleted", "failed"]
    # Estimates spread both evenly.
    assert parts_of(html) == [[["failed"], ["deleted"]] if max_ids else [["deleted", "failed"]] * 2]


@pytest.mark.parametrize("max_channels", [bucket_strip.MAX_FULL_CHANNELS, 0])
def test_the_strip_of_all_messages_draws_them_so_too(
    mona: User, max_channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_strip, "MAX_FULL_CHANNELS", max_channels)
    purge = purge_with_failures(mona)
    strip = PurgeMap(purge, summary_of(purge), [channel.channel_id for channel in summary_of(purge).channels]).draw()
    (bar,) = [bar for bar in strip.bars if bar.count]
    assert (bar.count, bar.highlighted, bar.failed, bar.remaining, bar.kind) == (10, 5, 5, 0, "deleted")
    assert strip.has_failed


def purge_with_failures(mona: User) -> Purge:
    """Return a finished purge of two minutes. Messages of the first one came back after each delete."""
    channel = make_channel()
    write(channel, raid_ids(2, 5))
    purge = purge_now(mona, by_victor(channel))
    failed = {"deleted": 5, "failed": 5, "failed_ids": pack_ids(raid_ids(1, 5)), "error": WRITTEN_AGAIN}
    assert purge.steps.update(**failed) == 1
    store_sums()
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.DONE_WITH_FAILURES)
    purge.refresh_from_db()
    return purge


def test_the_table_has_the_same_numbers(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, raid_ids(3, 4))
    html = read_html(sign_in(mona), f"/purges/{preview(mona, by_victor(channel)).pk}/")
    table = html[html.index("time-strip") :]
    rows = re.findall(r'#times">[^<]* to [^<]*</a>\s*</td>\s*<td class="num">(\d+)</td>', table)
    assert rows == ["4", "4", "4"]


def test_too_many_ids_are_estimated_and_the_page_says_so(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = make_channel()
    write(channel, raid_ids(4, 10))
    purge, client = preview(mona, by_victor(channel)), sign_in(mona)
    note = "some bars are estimates"
    assert note not in read_html(client, f"/purges/{purge.pk}/")
    monkeypatch.setattr(time_strips, "MAX_IDS", 39)
    html = read_html(client, f"/purges/{purge.pk}/")
    assert note in html
    assert sum(bars_of(html)[0]) == 40


def test_a_request_of_the_script_gets_the_strips_alone(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, raid_ids(2, 3))
    purge = preview(mona, by_victor(channel))
    at = raid_start() // 1_000
    html = read_html(sign_in(mona), f"/purges/{purge.pk}/?zoom=hour&at={at}", **{"HX-Target": "times"})
    assert html.strip().startswith("<section")
    assert "<html" not in html
    assert bars_of(html) == [[3, 3]]


@pytest.mark.parametrize("query", ["zoom=century", "zoom=day&at=x", "zoom=day&at=9" + "9" * 30])
def test_invalid_times_are_refused(mona: User, sign_in: SignIn, query: str) -> None:
    channel = make_channel()
    write(channel, raid_ids(1, 2))
    purge = preview(mona, by_victor(channel))
    assert sign_in(mona).get(f"/purges/{purge.pk}/?{query}").status_code == 400


@pytest.mark.parametrize("at", ["0", "-62135596800", "253402300799"])
def test_times_far_away_show_the_nearest_messages(mona: User, sign_in: SignIn, at: str) -> None:
    channel = make_channel()
    write(channel, raid_ids(1, 2))
    purge = preview(mona, by_victor(channel))
    assert bars_of(read_html(sign_in(mona), f"/purges/{purge.pk}/?zoom=year&at={at}")) == [[2]]


def test_many_bars_and_buckets_cost_no_more_queries(
    mona: User, sign_in: SignIn, django_assert_max_num_queries: Callable[..., object]
) -> None:
    def spread(buckets: int) -> Purge:
        channel: Channel = make_channel()
        for number in range(buckets):
            write(channel, old_ids(5, buckets_ago=3 + number), author=WILMA)
        return preview(mona, Selection(channel_ids=(channel.pk,), where=Author((WILMA,))))

    client = sign_in(mona)
    for purge in (spread(1), spread(12)):
        path = f"/purges/{purge.pk}/?zoom=all"
        read_html(client, path, **{"HX-Target": "times"})
        # Session, user, permissions, the purge, other purges and what they deleted of it, its summary, channels, its
        # buckets, the steps of some.
        with django_assert_max_num_queries(11):  # type: ignore[attr-defined]
            read_html(client, path, **{"HX-Target": "times"})
