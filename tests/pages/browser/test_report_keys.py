"""Reports are handled by keys: J and K move, C claims, R, E and N decide, and letters typed into a field do nothing."""

from __future__ import annotations

from functools import partial

from playwright.sync_api import expect

from chatstore.models import Channel, ReportCase
from moderation.models import Purge
from tests.chatstore.reports import report
from tests.moderation.channels import make_channel, old_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread


def make_cases(count: int = 2) -> list[ReportCase]:
    channel: Channel = make_channel()
    write(channel, old_ids(count))
    return [report(channel, message_id) for message_id in old_ids(count)]


def test_keys_open_the_next_report_and_delete_its_message(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        first, second = in_thread(make_cases)
        page.goto(f"{site.url}/reports/{first.pk}/")
        page.get_by_label("Reason").fill("jr")
        page.get_by_label("Reason").blur()
        # Other tests report messages too.
        following = page.get_by_role("link", name="Next").get_attribute("href") or ""
        page.keyboard.press("j")
        expect(page).to_have_url(f"{site.url}{following}")
        page.goto(f"{site.url}/reports/{second.pk}/")
        page.get_by_label("Reason").press_sequentially("rude")
        page.get_by_label("Reason").blur()
        page.keyboard.press("r")
        expect(page.get_by_role("status").filter(has_text="Message deleted: report in")).to_be_visible()
    decided = in_thread(partial(stored, second))
    assert (decided.resolution, decided.reason) == ("removed", "rude")
    assert in_thread(lambda: Purge.objects.get(pk=decided.purge_id or 0).manifest) == 1


def test_keys_move_back_claim_and_decide(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        first, second, third = in_thread(partial(make_cases, 3))
        page.goto(f"{site.url}/reports/{second.pk}/")
        # Other tests report messages too.
        previous = page.get_by_role("link", name="Previous").get_attribute("href") or ""
        page.keyboard.press("k")
        expect(page).to_have_url(f"{site.url}{previous}")
        page.keyboard.press("j")
        expect(page).to_have_url(f"{site.url}/reports/{second.pk}/")
        page.get_by_label("Reason").press_sequentially("cenk")
        page.get_by_label("Reason").blur()
        page.keyboard.press("c")
        expect(page.get_by_text("You have claimed this report until")).to_be_visible()
        assert in_thread(partial(stored, second)).claimed_by is not None
        page.keyboard.press("c")
        expect(page.get_by_text("Not claimed.")).to_be_visible()
        assert in_thread(partial(stored, second)).claimed_by is None
        for case, key, resolution in ((first, "e", "kept"), (third, "n", "nothing")):
            page.goto(f"{site.url}/reports/{case.pk}/")
            page.keyboard.press(key)
            expect(page.get_by_role("status").filter(has_text="report in")).to_be_visible()
            assert in_thread(partial(stored, case)).resolution == resolution
        assert in_thread(partial(stored, second)).resolution == ""


def stored(case: ReportCase) -> ReportCase:
    return ReportCase.objects.select_related("claimed_by").get(pk=case.pk)
