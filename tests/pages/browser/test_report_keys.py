"""Reports are handled by keys: J moves on, R deletes the message, and letters typed into a field do neither."""

from __future__ import annotations

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
    decided = in_thread(lambda: ReportCase.objects.get(pk=second.pk))
    assert (decided.resolution, decided.reason) == ("removed", "rude")
    assert in_thread(lambda: Purge.objects.get(pk=decided.purge_id or 0).manifest) == 1
