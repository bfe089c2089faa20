"""The page of a running scan can be used while polls replace its contents."""

from __future__ import annotations

from playwright.sync_api import expect

from chatstore.models.users import User
from moderation.models import Purge
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import draft_purge
from tests.moderation.channels import by_victor, make_channel, old_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

BUCKETS = 40


def draft(name: str) -> Purge:
    channel = make_channel()
    for ago in range(BUCKETS, 0, -1):
        write(channel, old_ids(2, buckets_ago=ago))
    return draft_purge(moderator=User.objects.get(username=name), selection=by_victor(channel))


def scan_first_buckets(purge: Purge) -> None:
    scan_purge(purge.pk, ends_turn=lambda: True)


def test_a_scan_is_stopped_by_a_click_that_lasts_longer_than_a_poll(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        purge = in_thread(lambda: draft(account[0]))
        page.goto(f"{site.url}/purges/{purge.pk}/")
        button = page.get_by_role("button", name="Stop and discard")
        button.hover()
        page.mouse.down()
        in_thread(lambda: scan_first_buckets(purge))
        expect(page.get_by_role("heading", name="Newest matches so far")).to_be_visible()
        page.mouse.up()
        expect(page.get_by_role("heading", name="Discarded preview")).to_be_visible()
