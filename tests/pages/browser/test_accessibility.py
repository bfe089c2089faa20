"""Every page that a role may open, and what opens on it, has no violation that axe-core finds, in light and dark.

`make check-pages` checks all pages with more on them, at the width of a phone.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import pytest
from playwright.sync_api import Page, expect

from chatstore.domain.roles import Role
from chatstore.domain.runs import RunState
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.store.activity import busy_channels
from moderation.management.demo_accounts import CAST
from moderation.models import Purge
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.purging.controls import pause_purge
from moderation.operations.raids.detection import check_raids
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.conftest import give, make_user
from tests.moderation.channels import VICTOR, by_victor, confirm, preview, purge_now, run_to_end
from tests.moderation.raids import forget_raids, write_raid
from tests.pages.accessibility import SCHEMES, Scheme, violations_of
from tests.pages.conftest import make_previewed_purge
from tests.pages.serving import Site, browse, browse_as, create_account, enter_password, in_thread, sign_in
from tests.pages.whole_pages import read_pages
from tests.waiting import wait_until

LOADED_IN: Scheme = "light"

PARTS = 3
"""Of a role's pages, each a test: one that runs alone waits until those of the other workers have ended."""

FEWEST_PAGES = 6
"""Pages of one's own account, which staff without a role have."""

FEWEST_PAGES_OF_ROLES = 15
"""An auditor has twenty."""


def faults_of(page: Page, name: str) -> list[str]:
    """Return the violations in both color schemes. name: the path of the page."""
    faults = []
    for scheme, rules in SCHEMES.items():
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        if name.startswith("/admin/") and scheme != LOADED_IN:
            # Unfold reads the color scheme when a page loads.
            page.reload()
        faults += [f"{name} {scheme}: {violation}" for violation in violations_of(page, only=rules)]
    return faults


def faults_of_pages(page: Page, site: Site, paths: Sequence[str], *, status: int = 200) -> list[str]:
    """Open each page; return all of their violations. status: of their responses."""
    faults = []
    for path in paths:
        page.emulate_media(color_scheme=LOADED_IN, reduced_motion="reduce")
        response = page.goto(site.url + path)
        assert response is not None
        assert (response.status, response.url) == (status, site.url + path)
        if not path.startswith("/admin/"):
            page.locator("body:not(:has(#sidebar)), #sidebar[data-loaded]").first.wait_for(state="attached")
        faults += faults_of(page, path)
    return faults


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("role", CAST)
def test_no_page_of_a_role_has_a_violation(role: str, part: int, site: Site) -> None:
    account = create_account(role)
    paths = list(read_pages(User.objects.get(username=account[0]), make_previewed_purge()))
    assert len(paths) >= (FEWEST_PAGES_OF_ROLES if CAST[role][0] else FEWEST_PAGES)
    with browse_as(account, site) as page:
        assert faults_of_pages(page, site, paths[part::PARTS]) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("role", [Role.MODERATOR, Role.ADMIN])
def test_no_page_of_a_role_in_one_server_has_a_violation(role: Role, part: int, site: Site) -> None:
    account, made = create_account("tess"), make_previewed_purge()
    user = User.objects.get(username=account[0])
    give(user, role, guild_id=made.channel.guild_id)
    paths = list(read_pages(user, made))
    assert len(paths) >= FEWEST_PAGES_OF_ROLES
    with browse_as(account, site) as page:
        assert faults_of_pages(page, site, paths[part::PARTS]) == []


def make_purges() -> list[Purge]:
    """Return a purge that is queued, one that is paused, one done, one of which a hold kept all, and one restored."""
    mona = make_user("mona", group="moderators")
    queued, paused = (confirm(mona, preview(mona, by_victor(make_previewed_purge().channel))) for _ in range(2))
    pause_purge(paused.pk, moderator=mona)
    done, restored = (purge_now(mona, by_victor(make_previewed_purge().channel)) for _ in range(2))
    request_undo(restored.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(restored)
    channel = make_previewed_purge().channel
    held = confirm(mona, preview(mona, by_victor(channel)))
    place_hold(HoldRequest(channel=str(channel.pk), author=str(VICTOR)), reason="case 1", actor=mona)
    return [queued, paused, done, restored, run_to_end(held)]


@pytest.mark.slow
def test_no_state_of_a_purge_and_no_raid_has_a_violation(site: Site) -> None:
    account, purges, raid = create_account("mona"), make_purges(), write_raid()
    paths = [f"/purges/{purge.pk}/" for purge in purges] + [f"/raids/{raid.channel.pk}/", "/"]
    paths.append(f"/purges/{purges[2].pk}/undo/")
    wait_until(lambda: raid.channel.pk in busy_channels(20))
    check_raids(postgres_now())
    try:
        with browse_as(account, site) as page:
            assert faults_of_pages(page, site, paths) == []
            assert page.locator(".page-notice.critical").count() > 0
    finally:
        in_thread(forget_raids)


@pytest.mark.slow
def test_no_run_of_a_job_has_a_violation(site: Site) -> None:
    account, now = create_account("otto"), postgres_now()
    run = JobRun.objects.create(
        job="measure", state=RunState.DONE, due_at=now, started_at=now, ended_at=now, result={"channels": 3}
    )
    with browse_as(account, site) as page:
        assert faults_of_pages(page, site, [f"/maintenance/runs/{run.pk}/"]) == []


@pytest.mark.slow
def test_no_error_page_has_a_violation(site: Site) -> None:
    account, made = create_account("mona"), make_previewed_purge()
    pages = {
        400: [f"/purges/{made.purge.pk}/undo/"],
        403: ["/health/"],
        404: ["/nowhere/", f"/channels/{made.channel.pk}/{made.ids[0] + 1}/"],
    }
    # `browse_as` fails by what Chromium logs of each.
    with browse() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        sign_in(page, site, account)
        for status, paths in pages.items():
            assert faults_of_pages(page, site, paths, status=status) == []


@pytest.mark.slow
def test_nothing_that_opens_on_a_timeline_has_a_violation(site: Site) -> None:
    account, channel = create_account("mona"), make_previewed_purge().channel
    with browse_as(account, site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/")
        page.locator("#messages a.author").last.click()
        expect(page.locator("#panel h2")).to_be_focused()
        faults = faults_of(page, "a user in the panel")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        faults += faults_of(page, "the shortcuts")
        page.keyboard.press("Escape")
        row = page.locator("#messages .msg").last
        row.hover()
        row.get_by_label("Delete this message").click()
        # The notice stays while the pointer is on it.
        undo = page.locator("#toast").get_by_role("button", name="Undo")
        undo.hover()
        faults += faults_of(page, "the notice of a deleted message")
        assert undo.is_visible()
        page.locator("#messages .select-input:enabled").first.check()
        expect(page.locator("#selection")).to_contain_text("1 message selected")
        assert faults + faults_of(page, "a selection") == []


@pytest.mark.slow
def test_no_open_list_of_a_picker_has_a_violation(site: Site) -> None:
    account, _ = create_account("mona"), make_previewed_purge()
    with browse_as(account, site) as page:
        page.goto(f"{site.url}/delete/")
        page.get_by_role("combobox", name="Written by").first.press_sequentially("victor71")
        option = page.get_by_role("listbox").get_by_role("option").first
        expect(option).to_be_visible()
        assert faults_of(page, "people to choose from") == []
        assert option.is_visible()


@pytest.mark.slow
def test_no_page_before_signing_in_has_a_violation(site: Site) -> None:
    with browse() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{site.url}/sign-in/")
        faults = faults_of(page, "/sign-in/")
        enter_password(page, (f"unknown-{secrets.token_hex(4)}", "wrong"))
        page.get_by_text("The user name or the password is wrong.").wait_for()
        faults += faults_of(page, "a wrong password")
        page.goto(f"{site.url}/purges/1/undo/")
        assert "/sign-in/" in page.url
        faults += faults_of(page, "a page that needs an account")
        assert faults + faults_of_pages(page, site, ["/sign-in/sso/"], status=404) == []
