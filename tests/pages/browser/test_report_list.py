"""The list of reports scrolls to the open one, and the page stays at its heading."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chatstore.domain.reports import Resolution
from chatstore.models import Channel, ChatUser, ReportCase
from chatstore.models.users import User
from moderation.operations.reports.resolving import claim_case, resolve_case
from tests.chatstore.channels import fresh_id
from tests.chatstore.reports import report
from tests.moderation.channels import make_channel, old_ids, write
from tests.pages.browser.test_report_keys import make_cases
from tests.pages.serving import Site, browse_as, create_account, in_thread

FADE_PX = 48
"""Where the list fades, at the edge below which there is more."""

FROM_THE_EDGES = """() => {
  const row = document.querySelector(".case-link[aria-current]").getBoundingClientRect();
  const list = document.querySelector(".case-list ul").getBoundingClientRect();
  return [row.top - list.top, list.bottom - row.bottom];
}"""


def test_the_list_scrolls_to_the_open_report_but_the_page_does_not(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        cases = in_thread(lambda: make_cases(30))
        page.goto(f"{site.url}/reports/{cases[14].pk}/")
        expect(page.locator(".case-link[aria-current]")).to_be_in_viewport()
        assert page.evaluate("document.querySelector('.case-list ul').scrollTop") > 0
        assert page.evaluate("window.scrollY") == 0
        above, below = page.evaluate(FROM_THE_EDGES)
        assert above >= FADE_PX
        assert below >= FADE_PX


def test_the_way_back_comes_before_the_neighbours_on_a_phone(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        cases = in_thread(lambda: make_cases(3))
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(f"{site.url}/reports/{cases[1].pk}/")
        links = [page.get_by_role("link", name=name) for name in ("All reports", "Previous", "Next")]
        tops = [link.evaluate("link => link.getBoundingClientRect().top") for link in links]
        assert tops[0] < tops[1] == tops[2]


def test_the_place_of_a_resolved_report_is_not_cut_on_a_phone(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        case = in_thread(lambda: make_cases(1)[0])
        in_thread(lambda: Channel.objects.filter(pk=case.channel_id).update(name="a-rather-long-name-of-a-channel" * 2))
        in_thread(lambda: close(case, account[0]))
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(f"{site.url}/reports/?state=resolved")
        place = page.locator(f'.case-link[href="/reports/{case.pk}/"] .case-place')
        expect(place).to_be_visible()
        assert place.evaluate("one => [one.scrollWidth - one.clientWidth, getComputedStyle(one).whiteSpace]") == [
            0,
            "normal",
        ]
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def close(case: ReportCase, username: str) -> None:
    resolve_case(case.pk, actor=User.objects.get(username=username), resolution=Resolution.NOTHING, reason="")


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (1280, 760), (390, 844)])
def test_the_reported_message_is_not_below_the_decision(site: Site, width: int, height: int) -> None:
    with browse_as(create_account("mona"), site) as page:
        case = in_thread(report_among_long_messages)
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{site.url}/reports/{case.pk}/")
        message, decision = page.locator(".case .subject"), page.locator(".case-decision")
        expect(decision.get_by_role("button", name="Delete message")).to_be_attached()
        above, below = message.bounding_box(), decision.bounding_box()
        assert above is not None
        assert below is not None
        assert above["y"] + above["height"] <= below["y"]
        expect(message).to_be_in_viewport(ratio=1)
        expect(decision).to_be_in_viewport(ratio=1)


def report_among_long_messages() -> ReportCase:
    channel, ids = make_channel(), old_ids(9)
    write(channel, ids, content="\n".join(["A line of a long message"] * 4))
    return report(channel, ids[4])


LINES = """() => [...document.querySelectorAll(".case-link")].map((link) => {
  const lines = [...link.children].map((each) => {
    const box = each.getBoundingClientRect();
    return Math.round(box.height / parseFloat(getComputedStyle(each).lineHeight));
  });
  return lines.reduce((sum, each) => sum + each, 0);
})"""


def test_a_report_has_three_lines_however_long_its_place_is(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        cases = in_thread(lambda: make_cases(3))
        in_thread(lambda: claim_a_repeated_one(cases, account[0]))
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{site.url}/reports/{cases[1].pk}/")
        link = page.locator(f'.case-link[href="/reports/{cases[1].pk}/"]')
        expect(link).to_contain_text("this week")
        expect(link).to_contain_text("claimed by Mona")
        assert set(page.evaluate(LINES)) == {3}
        place = link.locator(".case-place")
        assert place.evaluate("one => one.scrollWidth > one.clientWidth")
        assert f"#{LONG_NAME}" in (place.get_attribute("title") or "")


@pytest.mark.parametrize("width", [360, 1280])
def test_a_claim_takes_no_room_from_the_place_and_has_its_own_line_on_a_phone(site: Site, width: int) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        cases = in_thread(lambda: make_cases(2))
        in_thread(lambda: claim_a_repeated_one(cases, account[0], channel="incident-room"))
        page.set_viewport_size({"width": width, "height": 800})
        # Other tests report messages too.
        page.goto(f"{site.url}/reports/?after={cases[0].pk}")
        link = page.locator(f'.case-link[href="/reports/{cases[1].pk}/"]')
        place, claim, text = (link.locator(css) for css in (".case-place", ".case-claim", ".case-text"))
        expect(place).to_contain_text("#incident-room")
        expect(place).not_to_contain_text("claimed")
        expect(claim).to_contain_text("claimed by Mona")
        assert place.evaluate("one => one.scrollWidth <= one.clientWidth")
        edges = "one => [one, one.parentElement].map((each) => each.getBoundingClientRect().right)"
        claim_end, end = claim.evaluate(edges)
        assert claim_end <= end + 1
        above, below = text.bounding_box(), claim.bounding_box()
        assert above is not None
        assert below is not None
        assert (above["y"] + above["height"] <= below["y"]) == (width == 360)


LONG_NAME = "a-rather-long-name-of-a-channel" * 2


def claim_a_repeated_one(cases: list[ReportCase], username: str, *, channel: str = LONG_NAME) -> None:
    author = fresh_id()
    ChatUser.objects.create(pk=author, name=f"zoe{author}", display_name="Zoë")
    ReportCase.objects.filter(pk__in=[case.pk for case in cases]).update(author_id=author)
    Channel.objects.filter(pk__in=[case.channel_id for case in cases]).update(name=channel)
    claim_case(cases[1].pk, actor=User.objects.get(username=username))
