"""A moderator clears a raid in Chromium with at most four clicks and a reason. Prints the time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from chatstore.domain.snowflakes import ms_of
from chatstore.models import Finding
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.store.activity import busy_channels
from moderation.models import PurgeApproval
from moderation.operations.raids.detection import check_raids
from moderation.operations.raids.review import select_raid
from moderation.views.raid_page import CHART_HEIGHT
from tests.moderation.channels import preview
from tests.moderation.raids import Raid, forget_raids, join_group, post_raid, write_groups, write_raid
from tests.pages.browser.tasks import task
from tests.pages.serving import Site, browse_as, create_account, in_thread
from tests.waiting import wait_until

MAX_CLICKS = 4


@pytest.fixture
def demo_raid(_open_databases: None) -> Iterator[Raid]:
    """Raid a channel by the command that raids the demonstration."""
    yield from found(post_raid())


@pytest.fixture
def long_raid(_open_databases: None) -> Iterator[Raid]:
    """Raid a channel for a minute and a half, which the command would take as long to post."""
    yield from found(write_raid())


def found(raid: Raid) -> Iterator[Raid]:
    wait_until(lambda: raid.channel.pk in busy_channels(20))
    check_raids(postgres_now())
    yield raid
    forget_raids()


@pytest.fixture
def page(site: Site) -> Iterator[Page]:
    with browse_as(create_account("mona"), site) as opened:
        yield opened


def test_the_demos_raid_is_cleared_from_the_notice_with_four_clicks_and_a_reason(
    demo_raid: Raid, site: Site, page: Page
) -> None:
    raid = demo_raid
    messages, accounts = len(raid.raid_ids), len(raid.raiders)
    with task("Raid", page, site, limit=MAX_CLICKS) as click:
        notice = page.locator(".page-notice", has=page.locator(f"a[href='/raids/{raid.channel.pk}/']"))
        expect(notice).to_contain_text(f"in #general (Tidewalkers): {messages} messages by {accounts} accounts")
        click(notice.get_by_role("link"))
        click(page.get_by_role("button", name=f"Preview {messages} messages"))
        delete = page.get_by_role("button", name=f"Delete {messages} messages")
        expect(delete).to_be_visible()
        # The reason is a template: nothing is typed.
        click(page.locator(".reason-templates").get_by_role("button", name="Raid clean-up"))
        click(delete)
        expect(page.get_by_role("heading", name=f"Deleted {messages} messages")).to_be_visible()
    page.goto(f"{site.url}/channels/{raid.channel.pk}/")
    left = page.locator(".msg").evaluate_all("rows => rows.map(row => row.id.slice(1))")
    assert sorted(map(int, left)) == raid.other_ids


def test_an_account_opens_in_the_panel_and_the_selection_is_kept(long_raid: Raid, site: Site, page: Page) -> None:
    page.goto(f"{site.url}/raids/{long_raid.channel.pk}/")
    first = page.locator(".account-line").first
    first.get_by_role("checkbox").uncheck()
    first.get_by_role("link").click()
    panel = page.locator("#panel")
    expect(panel.get_by_role("heading", name=first.locator(".author").inner_text()).first).to_be_visible()
    expect(first.get_by_role("checkbox")).not_to_be_checked()
    assert page.url.endswith(f"/raids/{long_raid.channel.pk}/")


def test_the_preview_is_the_third_key_away_however_many_accounts_there_are(
    long_raid: Raid, site: Site, page: Page
) -> None:
    page.goto(f"{site.url}/raids/{long_raid.channel.pk}/")
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the button that previews")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=re.compile("^Preview .+ messages$"))).to_be_focused()


def test_a_notice_that_comes_with_a_reload_is_in_view(long_raid: Raid, page: Page) -> None:
    finding = Finding.objects.filter(subject=str(long_raid.channel.pk))
    in_thread(lambda: finding.update(closed_at=ClockTimestamp()))
    page.goto(page.url)
    # By then Chromium has stored what to keep in place.
    page.wait_for_timeout(300)
    in_thread(lambda: finding.update(closed_at=None))
    page.reload(wait_until="networkidle")
    notice = page.locator(".page-notice.critical").bounding_box()
    top = page.locator(".top").bounding_box()
    assert notice is not None
    assert top is not None
    assert notice["y"] >= top["y"] + top["height"]


def test_a_timeline_that_opens_at_its_end_shows_the_notice(long_raid: Raid, site: Site, page: Page) -> None:
    page.goto(f"{site.url}/channels/{long_raid.channel.pk}/#end")
    expect(page.locator(".msg").last).to_be_in_viewport()
    notice, heading = page.locator(".page-notice.critical").first, page.get_by_role("heading", level=1)
    expect(notice).to_be_in_viewport(ratio=1)
    expect(heading).to_be_in_viewport(ratio=1)
    above, below = notice.bounding_box(), heading.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]


def test_a_selected_old_member_is_pointed_out_and_the_chart_is_read_by_keys(
    long_raid: Raid, site: Site, page: Page
) -> None:
    page.goto(f"{site.url}/raids/{long_raid.channel.pk}/")
    expect(page.locator(".established")).to_be_hidden()
    member = page.locator(f"input[name='account'][value='{next(iter(long_raid.members))}']")
    page.get_by_text(re.compile(rf"\b{len(long_raid.members)} other accounts? wrote here")).click()
    member.check()
    expect(page.locator(".established")).to_have_text("1 of the selected accounts has been here for over a year.")
    member.uncheck()
    expect(page.locator(".established")).to_be_hidden()
    bars = page.locator(".raid-chart .time-strip > a")
    bars.last.focus()
    page.keyboard.press("ArrowLeft")
    before = bars.nth(-2)
    expect(before).to_be_focused()
    expect(before).to_have_accessible_name(re.compile(r" to .+: \d+ messages? \(.+\)"))
    page.keyboard.press("End")
    expect(bars.last).to_be_focused()
    page.get_by_text("Show as table").click()
    expect(page.locator(".raid-chart tbody tr")).to_have_count(bars.count())


def test_a_group_of_similar_messages_selects_exactly_its_accounts(site: Site, page: Page) -> None:
    raid = in_thread(write_groups)
    page.goto(f"{site.url}/raids/{raid.channel.pk}/")
    status, others = page.locator("[data-selected]"), page.locator(".other-accounts")
    expect(status).to_have_text("4 messages selected")
    page.get_by_role("button", name="Select only these 3 accounts").click()
    expect(status).to_have_text("3 messages selected")
    expect(page.locator(".established")).to_have_text("3 of the selected accounts have been here for over a year.")
    selected = page.locator("input[name='account']:checked").evaluate_all("boxes => boxes.map(box => box.value)")
    assert set(map(int, selected)) == raid.members
    # Who is selected is in view; the page is not loaded again.
    expect(others.get_by_role("checkbox").first).to_be_visible()
    page.get_by_role("button", name="Select only these 4 accounts").click()
    expect(page.locator(".established")).to_be_hidden()
    # With another time, an account that has come since is listed, and not selected.
    late = in_thread(join_group, raid, 0.1)
    page.get_by_role("button", name="Show this time").click()
    expect(page.locator(f"input[name='account'][value='{late}']")).not_to_be_checked()
    page.get_by_role("button", name="Preview 4 messages").click()
    expect(page.get_by_role("button", name="Delete 4 messages")).to_be_visible()


def test_the_slider_below_the_chart_narrows_the_time(long_raid: Raid, site: Site, page: Page) -> None:
    page.goto(f"{site.url}/raids/{long_raid.channel.pk}/")
    # The knobs are below the bars, and hide none of them.
    bars, knob = (page.locator(found).first.bounding_box() for found in (".raid-plot > svg", "[data-from]"))
    assert bars is not None
    assert knob is not None
    assert knob["y"] >= bars["y"] + bars["height"]
    begin = page.locator("#start").input_value()
    whole = page.get_by_role("button", name="Show the whole raid")
    expect(whole).to_have_count(0)
    page.get_by_role("slider", name="From").press("ArrowRight")
    # The page is loaded for the new time, with which its chart begins.
    expect(whole).to_be_visible()
    assert int(page.locator("#start").input_value()) > int(begin)
    expect(page.get_by_role("slider", name="From")).to_have_js_property("value", "0")
    whole.click()
    expect(whole).to_have_count(0)
    assert page.locator("#start").input_value() == begin
    expect(page.get_by_role("button", name="Preview 60 messages")).to_be_visible()


def test_a_phone_shows_an_account_beside_a_purge_that_is_under_way_without_scrolling(
    long_raid: Raid, site: Site, page: Page
) -> None:
    in_thread(_ask_for_approval, long_raid)
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto(f"{site.url}/raids/{long_raid.channel.pk}/")
    purge, account, bar = (
        page.locator(found).first.bounding_box()
        for found in (".under-way .primary", ".account-choice", ".select-inner")
    )
    assert purge is not None
    assert account is not None
    assert bar is not None
    assert 0 < purge["y"] < account["y"]
    assert account["y"] + account["height"] <= bar["y"] < 640
    expect(page.locator(".under-way-by")).to_have_text(re.compile("^by .+,$"))
    by, whole = page.locator(".under-way-by").bounding_box(), page.locator(".under-way > .small").bounding_box()
    assert by is not None
    assert whole is not None
    assert whole["height"] < 1.5 * by["height"], "the deadline has a line of its own"
    # The bars are drawn for this height.
    drawn = "svg => svg.getBoundingClientRect().height - parseFloat(getComputedStyle(svg).borderBottomWidth)"
    assert page.locator(".raid-plot > svg").evaluate(drawn) >= CHART_HEIGHT


def test_the_number_of_messages_to_preview_is_read_in_one_or_two_lines_on_a_phone(
    long_raid: Raid, site: Site, page: Page
) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto(f"{site.url}/raids/{long_raid.channel.pk}/")
    selected = page.locator(".select-inner [data-selected]")
    expect(selected).to_have_text(re.compile(r"messages selected$"))
    lines = "one => one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight)"
    assert selected.evaluate(lines) <= 2.1


def test_a_phone_shows_the_times_of_the_chart_and_the_age_of_the_accounts_that_are_kept(
    long_raid: Raid, site: Site, page: Page
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{site.url}/raids/{long_raid.channel.pk}/")
    for time in page.locator(".raid-axis > span").all():
        expect(time).to_be_visible()
        expect(time).not_to_be_empty()
    expect(page.locator(".kept-samples .age").first).to_be_visible()
    expect(page.locator(".kept-samples .age").first).to_contain_text("account created")


def test_nothing_is_offered_that_a_purge_under_way_includes(long_raid: Raid, site: Site, page: Page) -> None:
    in_thread(_ask_for_approval, long_raid)
    page.goto(f"{site.url}/raids/{long_raid.channel.pk}/")
    status, again = page.locator("[data-selected]"), page.get_by_role("button", name=re.compile("^Preview"))
    expect(status).to_have_text("60 messages selected, all included in the purge above")
    expect(again).to_be_hidden()
    # Another account is beyond it.
    page.get_by_text(re.compile(rf"\b{len(long_raid.members)} other accounts? wrote here")).click()
    member = page.locator(f"input[name='account'][value='{next(iter(long_raid.members))}']")
    member.check()
    expect(status).to_have_text(re.compile(r"^6\d messages selected$"))
    expect(again).to_have_text(re.compile(r"^Preview 6\d messages$"))
    member.uncheck()
    expect(again).to_be_hidden()


def _ask_for_approval(raid: Raid) -> None:
    moderator = User.objects.get(username=create_account("mona")[0])
    selection = select_raid(raid.channel.pk, raid.raiders, start_ms=ms_of(raid.raid_ids[0]), end_ms=None)
    purge = preview(moderator, selection)
    PurgeApproval.objects.create(purge=purge, requested_by=moderator, reason="raid", manifest_hash=purge.manifest_hash)
