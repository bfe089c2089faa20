"""On a phone the decision on a report is a bar at the lower edge. It covers no message and nothing that is focused."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from chatstore.models import ReportCase
from tests.chatstore.reports import report
from tests.moderation.channels import make_channel, old_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

ABOVE_THE_BAR = """one => {
  const bar = document.querySelector(".case-decision").getBoundingClientRect();
  return bar.top - one.getBoundingClientRect().bottom;
}"""


def make_case() -> ReportCase:
    channel = make_channel(guild="Harbour")
    write(channel, old_ids(12), content="A message that is long enough for two lines of a phone, and says little: ")
    return report(channel, old_ids(12)[6], text="They post this everywhere.")


@pytest.mark.parametrize("size", [(390, 844), (360, 640)])
def test_the_decision_is_in_view_wherever_one_scrolls_and_covers_nothing(site: Site, size: tuple[int, int]) -> None:
    with browse_as(create_account("mona"), site) as page:
        case = in_thread(make_case)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.goto(f"{site.url}/reports/{case.pk}/")
        page.locator(".case .subject").evaluate("one => one.scrollIntoView({block: 'end'})")
        assert page.locator(".case .subject").evaluate(ABOVE_THE_BAR) >= 0
        most = page.evaluate("document.documentElement.scrollHeight - innerHeight")
        assert most > 0, "the report does not scroll"
        for part in (0, 0.3, 0.6, 1):
            page.evaluate("top => scrollTo(0, top)", part * most)
            expect_decision(page)
        bar = page.locator(".case-decision").bounding_box()
        assert bar is not None
        assert bar["height"] <= size[1] / 3
        # At the end of the page everything is above the bar.
        assert page.locator(".case-facts").evaluate(ABOVE_THE_BAR) >= 0
        assert page.locator(".samples .msg-head").last.evaluate(ABOVE_THE_BAR) >= 0


def test_the_bar_covers_no_focused_element(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        case = in_thread(make_case)
        page.set_viewport_size({"width": 390, "height": 640})
        page.goto(f"{site.url}/reports/{case.pk}/")
        links = page.locator(".case :is(.samples, .case-facts) a:visible").all()
        assert links
        for link in links:
            page.evaluate("scrollTo(0, 0)")
            link.focus()
            assert link.evaluate(ABOVE_THE_BAR) >= 0


def test_the_result_of_a_decision_is_in_view_on_the_next_report(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        case = in_thread(make_case)
        in_thread(make_case)
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"{site.url}/reports/{case.pk}/")
        page.get_by_role("button", name="Keep message").click()
        page.wait_for_url("**done=*")
        result = page.locator("#decision-done")
        expect(result).to_contain_text("report in")
        expect(result).to_be_in_viewport(ratio=1)


def test_a_low_window_leaves_the_decision_below_the_messages(site: Site) -> None:
    """Of a phone on its side the bar would cover half of the window."""
    with browse_as(create_account("mona"), site) as page:
        case = in_thread(make_case)
        page.set_viewport_size({"width": 640, "height": 360})
        page.goto(f"{site.url}/reports/{case.pk}/")
        position = page.locator(".case-decision").evaluate("one => getComputedStyle(one).position")
        assert position == "static"


IS_FREE = """one => {
  const box = one.getBoundingClientRect();
  const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return box.top >= 0 && box.bottom <= innerHeight && box.height >= 24 && box.width >= 24 && one.contains(at);
}"""


def expect_decision(page: Page) -> None:
    """Expect the claim, the reason and each decision in view, and large enough to be tapped; nothing covers them."""
    parts = page.locator(".case-decision :is(button, textarea, summary)").all()
    assert len(parts) == 6
    for part in parts:
        assert part.evaluate(IS_FREE), part.inner_text()
