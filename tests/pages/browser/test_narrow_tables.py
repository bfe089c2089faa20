"""Wide tables on a phone: each row is a card that shows what matters, and is still a row for screen readers."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Iterator

import pytest
from django.db import transaction
from playwright.sync_api import Locator, Page, expect

from chatstore.domain.buckets import bucket_at, bucket_days
from chatstore.domain.health import ChannelState
from chatstore.domain.texts import format_date_range
from chatstore.models import Channel, ChannelSummary, ChatUser
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.summaries import refresh_summaries
from chatstore.store import ledger
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import AuditEntry, Purge
from moderation.operations.access.audit import record_action
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.chatstore.channels import fresh_id, now_ms
from tests.chatstore.figures import note
from tests.moderation.channels import VICTOR, confirm, make_channel, old_ids, preview, run_to_end, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

WIDTHS = (360, 390, 720)

COLUMNS = ("channel", "state", "tombstones", "bytes", "page", "empty", "uncovered", "purged")


def make_measured(name: str) -> Channel:
    channel = make_channel(guild=name, name=f"a-rather-long-name-of-a-channel-{name}")
    ChannelSummary.objects.filter(channel=channel).update(
        figure_state=ChannelState.HEALTHY, tombstones=7, bytes=3_000_000, page_us=2_410, page_rows=51,
        page_tombstones=0, page_at=postgres_now(), tombstones_at=postgres_now(), due_at=None,
    )  # fmt: skip
    return channel


def make_large(name: str) -> None:
    now, channel = postgres_now(), make_measured(name)
    ChannelSummary.objects.filter(channel=channel).update(
        figure_state=ChannelState.TOMBSTONES, tombstones=1_245_678, tombstones_bucket=333, bytes=123_000_000,
        bytes_bucket=333, bytes_at=now, buckets=400, empty_buckets=392, empty_share=0.98, uncovered_deletes=1_245_678,
        uncovered_at=now, last_purge_id=1, last_purged_at=now - dt.timedelta(hours=43),
    )  # fmt: skip


def draft_over_two_channels(username: str) -> Purge:
    channels = [make_measured(f"harbour {secrets.token_hex(6)}") for _ in range(2)]
    for channel in channels:
        write(channel, old_ids(1_200))
    where = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))
    return preview(User.objects.get(username=username), where)


def width_beyond(page: Page, element: str = "document.documentElement") -> int:
    """Return by how many pixels the content of an element is wider than it."""
    beyond: int = page.evaluate(f"(one => one.scrollWidth - one.clientWidth)({element})")
    return beyond


def expect_fits(page: Page, *parts: Locator) -> None:
    """Expect each part within the window, and nothing that makes the page or a table scroll sideways."""
    width = page.evaluate("innerWidth")
    for wide in ("document.documentElement", "document.querySelector('.has-cards')"):
        assert width_beyond(page, wide) == 0, (width, wide)
    for part in parts:
        expect(part).to_be_visible()
        box = part.bounding_box()
        assert box is not None
        assert box["x"] >= 0, part
        assert box["x"] + box["width"] <= width, part


@pytest.mark.parametrize("width", WIDTHS)
def test_the_channels_and_the_jobs_of_an_operator(site: Site, width: int) -> None:
    name = f"harbour {secrets.token_hex(6)}"
    with browse_as(create_account("otto"), site) as page:
        in_thread(lambda: make_measured(name))
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{site.url}/health/channels/?server={name}")
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader"))
        expect(row.get_by_role("cell")).to_have_count(7)
        expect_fits(
            page, row.get_by_text("Healthy"), row.get_by_text("2.4 ms.").first, row.get_by_text("7", exact=True)
        )
        headings = page.get_by_role("columnheader")
        expect(headings).to_have_count(8)
        expect_fits(page, *headings.all())
        headings.filter(has_text="Largest partition").get_by_role("link").click()
        expect(headings.filter(has_text="Largest partition")).to_have_attribute("aria-sort", "descending")

        page.goto(f"{site.url}/maintenance/")
        job = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="Reconcile ledger"))
        expect(job.get_by_role("cell")).to_have_count(5)
        expect_fits(page, job.get_by_text("scheduled", exact=True), job.get_by_role("button", name="Run now"))
        expect(page.get_by_role("columnheader", name="State")).to_have_count(1)


@pytest.fixture(params=["light", "dark"])
def large_table(request: pytest.FixtureRequest, site: Site) -> Iterator[tuple[Page, str]]:
    """Open a laptop's window in each color scheme; yield the URL of a table of channels with long figures."""
    name = f"harbour {secrets.token_hex(6)}"
    with browse_as(create_account("otto"), site) as page:
        in_thread(lambda: make_large(name))
        page.emulate_media(color_scheme=request.param)
        page.set_viewport_size({"width": 1280, "height": 800})
        yield page, f"{site.url}/health/channels/?server={name}"


def test_all_columns_of_the_channels_are_whole_on_a_laptop(large_table: tuple[Page, str]) -> None:
    page, url = large_table
    page.goto(url)
    expect(page.get_by_role("link", name="43 hours ago")).to_be_visible()
    expect_fits(page, *page.get_by_role("columnheader").all(), *page.get_by_role("cell").all())


def test_every_heading_of_the_channels_shows_that_it_sorts(large_table: tuple[Page, str]) -> None:
    page, url = large_table
    headings = page.get_by_role("columnheader")
    for sort, shown in (("-state", "↓"), ("-bytes", "↓"), ("uncovered", "↑")):
        page.goto(f"{url}&sort={sort}")
        expect_fits(page, *headings.all(), *page.get_by_role("cell").all())
        current = COLUMNS.index(sort.removeprefix("-"))
        contents = headings.locator("a").evaluate_all(
            "links => links.map(link => getComputedStyle(link, '::after').content)"
        )
        marks = [re.sub("[^↑↓↕]", "", content) for content in contents]
        assert marks == ["↕"] * current + [shown] + ["↕"] * (len(COLUMNS) - current - 1)
    # The direction is in `aria-sort`, so marks are not part of the names.
    expect(headings.first.get_by_role("link", name="Channel", exact=True)).to_be_visible()


def test_figures_that_are_unknown_are_dashes_on_a_card_with_others(site: Site) -> None:
    name = f"harbour {secrets.token_hex(6)}"
    with browse_as(create_account("otto"), site) as page:
        channel = in_thread(lambda: make_measured(name))
        in_thread(lambda: ChannelSummary.objects.filter(channel=channel).update(bytes=None))
        in_thread(lambda: make_channel(guild=name, name=f"never-measured-{name}"))
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(f"{site.url}/health/channels/?server={name}")
        rows = page.get_by_role("row").filter(has=page.get_by_role("rowheader"))
        expect(rows).to_have_count(2)
        are_shown = "cells => cells.map(cell => cell.offsetWidth > 1)"
        for title, shown in (("a-rather", [True, True, True]), ("never-measured", [False] * 5)):
            dashes = rows.filter(has_text=title).locator("td:has(> .sr)")
            assert dashes.evaluate_all(are_shown) == shown, title


def test_the_filters_of_the_channels_are_folded_on_a_phone_until_one_is_set(site: Site) -> None:
    with browse_as(create_account("otto"), site) as page:
        apply, fold = page.get_by_role("button", name="Apply filters"), page.get_by_text("Filter channels")
        page.goto(f"{site.url}/health/channels/")
        expect(apply).to_be_visible()
        expect(fold).to_be_hidden()
        for width in (390, 360):
            page.set_viewport_size({"width": width, "height": 800})
            expect(apply).to_be_hidden()
        fold.click()
        page.get_by_label("Name begins with").fill("no-such-channel")
        apply.click()
        expect(page.get_by_text("No channels match these filters.")).to_be_visible()
        expect(apply).to_be_visible()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_preview_over_two_channels(site: Site, width: int) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        purge = in_thread(lambda: draft_over_two_channels(account[0]))
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{site.url}/purges/{purge.pk}/")
        table = page.get_by_role("table", name="By channel")
        expect(table.get_by_role("row")).to_have_count(3)
        buttons = table.get_by_role("button", name="Keep this channel")
        expect(buttons).to_have_count(2)
        expect_fits(page, *buttons.all(), table.get_by_text("1,200").first)


def restored_in_part(username: str) -> Purge:
    """Return a purge of which an undo restored twenty messages in each of two channels."""
    user = User.objects.get(username=username)
    purge = run_to_end(confirm(user, draft_over_two_channels(username)))
    request_undo(purge.pk, moderator=user, part=UndoPart(message_ids=tuple(old_ids(1_200)[:20])), reason="harmless")
    return run_to_end(purge)


@pytest.mark.parametrize("width", [*WIDTHS, 1280])
def test_the_channels_of_a_purge_that_was_restored_in_part(site: Site, width: int) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        purge = in_thread(lambda: restored_in_part(account[0]))
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{site.url}/purges/{purge.pk}/")
        table = page.get_by_role("table", name="By channel")
        expect(table.locator("[data-label=Restored]")).to_have_text(["20", "20"])
        links = table.get_by_role("link", name="Restore 1,180")
        expect(links).to_have_count(2)
        expect_fits(page, *table.get_by_role("cell").all(), *links.all())
        name = table.get_by_role("cell").first.bounding_box()
        assert name is not None
        assert name["width"] > 180


def test_labels_of_the_admin_s_lists_are_in_sentence_case(site: Site) -> None:
    name = f"harbour {secrets.token_hex(6)}"
    with browse_as(create_account("ada"), site) as page:
        in_thread(lambda: make_measured(name))
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(f"{site.url}/admin/chatstore/channel/?q={name.replace(' ', '+')}")
        cells = page.locator("#result_list tbody [data-label]")
        expect(cells.first).to_have_attribute("data-label", "Name")
        labels = cells.evaluate_all(
            "cells => cells.map(cell => [cell.dataset.label, getComputedStyle(cell, '::before').textTransform])"
        )
        assert ["Tombstones, worst bucket", "none"] in labels
        assert {transform for _, transform in labels} == {"none"}


def test_a_name_in_the_admin_s_list_of_channels_is_cut_only_without_room(site: Site) -> None:
    name = f"harbour {secrets.token_hex(6)}"
    with browse_as(create_account("ada"), site) as page:
        channel = in_thread(make_measured, name)
        for width in (1600, 1280, 1024):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{site.url}/admin/chatstore/channel/?q={channel.pk}")
            cell = page.locator("#result_list tbody .field-shown_name")
            expect(cell.locator("[title]")).to_have_attribute("title", f"#{channel.name}")
            table = page.locator("div:has(> #result_list)").first
            assert table.evaluate("box => box.scrollWidth - box.clientWidth") == 0, width
            if width == 1600:
                assert cell.evaluate("cell => cell.scrollWidth - cell.clientWidth") == 0


def test_times_and_user_names_are_in_one_line_in_the_admin_s_list_of_purges(site: Site) -> None:
    account = create_account("ada")
    purge = in_thread(draft_over_two_channels, account[0])
    with browse_as(account, site) as page:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{site.url}/admin/moderation/purge/?q={account[0]}")
        row = page.locator("#result_list .data-row")
        expect(row.locator(".field-selection_label a")).to_have_attribute(
            "href", re.compile(rf"/purge/{purge.pk}/change/")
        )
        for column in ("moderator", "created_at", "finished_at"):
            expect(row.locator(f".field-{column}")).to_have_css("white-space", "nowrap")
        table = page.locator("div:has(> #result_list)").first
        assert table.evaluate("box => box.scrollWidth - box.clientWidth") == 0


def test_a_value_of_several_lines_has_room_in_the_admin_s_list_on_a_phone(site: Site) -> None:
    account = create_account("ada")
    in_thread(draft_over_two_channels, account[0])
    with browse_as(account, site) as page:
        page.set_viewport_size({"width": 360, "height": 900})
        page.goto(f"{site.url}/admin/moderation/purge/?q={account[0]}")
        cell = page.locator("#result_list .data-row .field-selection_label")
        text = cell.locator("a")
        assert text.evaluate(LINES) > 1
        outer, inner = cell.bounding_box(), text.bounding_box()
        assert outer is not None
        assert inner is not None
        assert inner["y"] - outer["y"] >= 8
        assert outer["y"] + outer["height"] - inner["y"] - inner["height"] >= 8


LINES = """one => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map(rect => Math.round(rect.bottom / 8))).size;
}"""
"""Return how many lines the text of an element has."""


def record_confirmed(username: str) -> AuditEntry:
    actor = User.objects.get(username=username)
    with transaction.atomic():
        record_action("purge_confirmed", actor=actor, details={"manifest_hash": "0f" * 32})
    return AuditEntry.objects.latest("pk")


def test_a_hash_in_an_entry_of_the_admin_s_audit_log_is_whole_on_a_phone(site: Site) -> None:
    account = create_account("ada")
    entry = in_thread(record_confirmed, account[0])
    with browse_as(account, site) as page:
        page.set_viewport_size({"width": 360, "height": 800})
        page.goto(f"{site.url}/admin/moderation/auditentry/{entry.pk}/change/")
        expect(page.locator(".readonly").filter(has_text="0f" * 32)).to_be_visible()
        assert width_beyond(page) == 0


def test_the_days_of_a_result_and_keys_pressed_together_are_not_broken_on_a_narrow_phone(site: Site) -> None:
    name = f"zoe{secrets.token_hex(6)}"
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(lambda: write_as(name))
        page.set_viewport_size({"width": 360, "height": 800})
        page.goto(f"{site.url}/find/?q={name}")
        days = page.locator(".found td[data-label] .nowrap")
        expect(days).to_be_visible()
        expect_fits(page, days)
        assert days.evaluate(LINES) == 1
        page.goto(f"{site.url}/channels/{channel.pk}/")
        page.evaluate("document.querySelector('#keys').showModal()")
        tops = (
            page.locator("#keys dt")
            .first.locator("kbd")
            .evaluate_all("keys => keys.map(key => Math.round(key.getBoundingClientRect().top))")
        )
        assert len(set(tops)) == 1
        # Words beside the keys wrap.
        widths = page.locator("#keys dt").evaluate_all("parts => parts.map(part => part.offsetWidth)")
        assert max(widths) < 140, widths
        assert width_beyond(page, "document.querySelector('#keys')") == 0


def write_as(name: str) -> Channel:
    author, channel = fresh_id(), make_channel()
    ChatUser.objects.create(pk=author, name=name)
    write(channel, old_ids(1), author=author)
    return channel


def note_tombstones(channel: Channel, bucket: int, tombstones: int) -> None:
    ledger.ensure_row(channel.pk, bucket)
    note(channel.pk, bucket, source="measure", tombstones=tombstones)
    refresh_summaries([channel.pk])


def test_the_longest_days_of_a_partition_have_room_beside_a_large_figure(site: Site) -> None:
    newest = bucket_at(now_ms())
    longest = max(range(newest - 80, newest), key=lambda bucket: len(format_date_range(*bucket_days(bucket))))
    channel = make_channel(name=f"harbour-{secrets.token_hex(3)}")
    # More than other tests: the page lists the worst.
    in_thread(note_tombstones, channel, longest, 1_245_678)
    try:
        with browse_as(create_account("otto"), site) as page:
            page.set_viewport_size({"width": 360, "height": 800})
            page.goto(f"{site.url}/health/")
            line = page.locator(".purge-line").filter(has=page.get_by_role("link", name=re.compile(channel.name))).first
            expect(line.locator(".num")).to_have_text("1,245,678")
            assert width_beyond(page) == 0
    finally:
        in_thread(note_tombstones, channel, longest, 0)
