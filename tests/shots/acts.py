"""What is done on a page before its screenshot is taken."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import F
from playwright.sync_api import Page

from chatstore.models import Finding
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from moderation.models import Purge, StaffSession
from moderation.sessions import SessionStore
from tests.pages.second_factors import code_of
from tests.pages.serving import Site, enter_password, in_thread

Act = Callable[[Page], None]
"""Does something on the page that is open."""

RAID_AGE = dt.timedelta(days=1)
"""More than since the raid of the scene began."""


def click(selector: str) -> Act:
    """Click the last element that matches."""
    return lambda page: page.locator(selector).last.click()


def press(key: str) -> Act:
    """Press a key."""
    return lambda page: page.keyboard.press(key)


def unfold(selector: str) -> Act:
    """Unfold the first element that matches, without scrolling to it."""
    return lambda page: page.locator(selector).first.evaluate("details => { details.open = true; }")


def submit(form: str, **values: str) -> Act:
    """Fill the fields of the first form that matches, by their names, and send it. The form may be folded."""

    def act(page: Page) -> None:
        found = page.locator(form).first
        found.evaluate("form => { for (let at = form; at; at = at.parentElement) at.open = true; }")
        for name, value in values.items():
            found.locator(f"[name={name}]").fill(value)
        found.locator("button:not([type=button])").last.click()

    return act


def search_for(text: str) -> Act:
    return lambda page: page.get_by_role("searchbox").press_sequentially(text)


def reload_while_open(finding_id: int, shown: str) -> Act:
    """Load the page again while a finding is open: other pages are without the notice about it.

    shown: a selector of the element that shows it. The list of channels, which marks it too, is loaded after the page.
    """

    def act(page: Page) -> None:
        in_thread(_set_open, finding_id, True)
        try:
            page.reload(wait_until="networkidle")
            page.locator(shown).first.wait_for(state="attached")
        finally:
            in_thread(_set_open, finding_id, False)

    return act


def without_answer(purge_id: int, act: Act) -> Act:
    """Do something while a purge is older than the raid that it answers: the page of the raid is without it then."""

    def act_before(page: Page) -> None:
        in_thread(_move_draft, purge_id, -RAID_AGE)
        try:
            act(page)
        finally:
            in_thread(_move_draft, purge_id, RAID_AGE)

    return act_before


def delete_a_message(page: Page) -> None:
    """Delete the newest message that is loaded by its own button, and wait for the offer to undo that."""
    # Found once: newer messages load while this one is scrolled to, and the last one would be another then.
    loaded = page.locator("#messages .msg:not(.deleted)").last.get_attribute("id")
    button = page.locator(f"#{loaded} button.delete")
    # Its row shows its tools while one of them has the focus, also where the list moves below the pointer.
    button.focus()
    button.click()
    page.locator("#toast form").wait_for()


def sign_in_with(account: tuple[str, str]) -> Act:
    """Enter a user name and a password as if for the first time."""

    def act(page: Page) -> None:
        page.context.clear_cookies()
        page.reload()
        enter_password(page, account)

    return act


def open_on_localhost(path: str) -> Act:
    """Open a page in the same session at the only host that has passkeys here: an address has none."""

    def act(page: Page) -> None:
        page.context.add_cookies(
            [
                {"name": cookie["name"], "value": cookie["value"], "domain": "localhost", "path": "/"}
                for cookie in page.context.cookies()
            ]
        )
        server = urlsplit(page.url)
        page.goto(f"http://localhost:{server.port}{path}")

    return act


def make_recovery_codes(username: str) -> Act:
    """Replace the recovery codes of the account, on its page."""

    def act(page: Page) -> None:
        # Found now: a code is valid for half a minute.
        submit("form[action$='/recovery-codes/']", code=in_thread(_find_code, username))(page)

    return act


def long_after_sign_in(username: str, then: Act) -> Act:
    """Do something when the account's confirmation of its identity no longer counts."""

    def act(page: Page) -> None:
        in_thread(_age_sessions, username)
        then(page)

    return act


def sign_in_with_code(page: Page, site: Site, account: tuple[str, str]) -> None:
    """Sign in with a password and the code of an app."""
    page.goto(f"{site.url}/sign-in/")
    enter_password(page, account)
    page.get_by_label("Code").fill(in_thread(_find_code, account[0]))
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{site.url}/")


def _set_open(finding_id: int, is_open: bool) -> None:
    Finding.objects.filter(pk=finding_id).update(closed_at=None if is_open else ClockTimestamp())


def _find_code(username: str) -> str:
    return code_of(User.objects.get(username=username))


def _age_sessions(username: str) -> None:
    for key in StaffSession.objects.filter(account__username=username).values_list("session_key", flat=True):
        session = SessionStore(key)
        session["confirmed_at"] -= settings.CONFIRM_MINUTES * 60 + 1
        session.save()


def _move_draft(purge_id: int, by: dt.timedelta) -> None:
    Purge.objects.filter(pk=purge_id).update(created_at=F("created_at") + by)
