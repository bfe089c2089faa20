"""A strip that is wider than the screen shows the messages of the purge that the page is about."""

from __future__ import annotations

from playwright.sync_api import expect

from chatstore.models.users import User
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge
from tests.moderation.channels import WILMA, by_victor, confirm, make_channel, old_ids, preview, run_to_end, write
from tests.moderation.stored_sums import store_sums
from tests.pages.serving import Site, browse_as, create_account, in_thread

PERIODS = 90


def purge_of_old_messages(name: str) -> Purge:
    """Return a confirmed purge of what one author wrote long ago, in a channel in which others write until today."""
    channel, moderator = make_channel(), User.objects.get(username=name)
    write(channel, old_ids(4, buckets_ago=PERIODS))
    for ago in range(PERIODS, 0, -1):
        write(channel, old_ids(2, buckets_ago=ago), author=WILMA)
    return confirm(moderator, preview(moderator, by_victor(channel)))


def test_the_strip_of_a_purge_shows_its_messages_at_first_and_after_an_update(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        purge = in_thread(lambda: purge_of_old_messages(account[0]))
        page.goto(f"{site.url}/purges/{purge.pk}/")
        bars = page.locator("[data-strip] a")
        expect(bars).to_have_count(PERIODS)
        expect(bars.last).not_to_be_in_viewport()
        expect(page.locator("[data-strip] a.to-delete .slot")).to_be_in_viewport()
        in_thread(lambda: run_to_end(purge))
        deleted = page.locator("[data-strip] a.deleted .slot")
        expect(deleted).to_be_attached()
        page.locator("[data-strip]").scroll_into_view_if_needed()
        expect(deleted).to_be_in_viewport(timeout=20_000)


def half_done_purge(name: str) -> Purge:
    """Return a paused purge of what one author wrote in many periods, the older half of which is deleted."""
    channel, moderator = make_channel(), User.objects.get(username=name)
    for ago in range(PERIODS, 0, -1):
        write(channel, old_ids(2, buckets_ago=ago))
    purge = run_to_end(confirm(moderator, preview(moderator, by_victor(channel))))
    newest = [step.ordinal for step in purge.steps.order_by("-bucket")[: PERIODS // 2]]
    purge.steps.filter(ordinal__in=newest).update(state=StepState.PENDING, deleted=0, counted_at=None)
    store_sums()
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.PAUSED, finished_at=None)
    return purge


def test_the_strip_of_an_unfinished_purge_shows_both_what_is_deleted_and_what_is_not(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        page.set_viewport_size({"width": 360, "height": 800})
        purge = in_thread(lambda: half_done_purge(account[0]))
        page.goto(f"{site.url}/purges/{purge.pk}/")
        expect(page.locator("[data-strip] a")).to_have_count(PERIODS)
        page.locator("[data-strip]").scroll_into_view_if_needed()
        expect(page.locator("[data-strip] a.deleted .slot").last).to_be_in_viewport(ratio=1)
        expect(page.locator("[data-strip] a.to-delete .slot").first).to_be_in_viewport(ratio=1)


def purge_spread_over_all(name: str) -> Purge:
    """Return a purge of as many messages in each period, in the second of which others wrote the most."""
    channel, moderator = make_channel(), User.objects.get(username=name)
    for ago in range(PERIODS, 0, -1):
        write(channel, old_ids(2, buckets_ago=ago))
    write(channel, old_ids(200, buckets_ago=PERIODS - 1)[2:], author=WILMA)
    return confirm(moderator, preview(moderator, by_victor(channel)))


def test_the_strip_of_a_purge_of_as_many_in_each_period_shows_the_tallest_bar(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        purge = in_thread(lambda: purge_spread_over_all(account[0]))
        page.goto(f"{site.url}/purges/{purge.pk}/")
        bars = page.locator("[data-strip] a")
        expect(bars).to_have_count(PERIODS)
        page.locator("[data-strip]").scroll_into_view_if_needed()
        expect(bars.nth(1).locator(".slot")).to_be_in_viewport(ratio=1)
