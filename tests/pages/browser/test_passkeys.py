"""A passkey of Chromium's virtual authenticator is added, signs in and confirms."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from chatstore.models.users import User
from moderation.models import AuditEntry
from tests.pages.second_factors import set_up
from tests.pages.serving import Site, browse, create_account, enter_password

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def reach_code(page: Page, url: str, account: tuple[str, str]) -> None:
    page.goto(f"{url}/sign-in/")
    enter_password(page, account)
    page.wait_for_url(f"{url}/sign-in/code/")


def test_a_passkey_is_added_signs_in_and_confirms(site: Site) -> None:
    # A passkey belongs to a domain, which an address is not.
    url = site.url.replace("127.0.0.1", "localhost")
    account = create_account("lena")
    user = User.objects.get(username=account[0])
    # A recovery code: within Playwright's loop no code can be computed from the database.
    recovery_code = set_up(user)[0]
    with browse() as browser:
        page = browser.new_page()
        session = page.context.new_cdp_session(page)
        session.send("WebAuthn.enable")
        authenticator = session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})["authenticatorId"]

        reach_code(page, url, account)
        expect(page.get_by_role("button", name="Use a passkey")).to_have_count(0)
        page.get_by_label("Code").fill(recovery_code)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url(f"{url}/")

        page.goto(f"{url}/account/")
        page.get_by_role("link", name="Add a passkey …").click()
        page.get_by_label("Name").fill("Laptop")
        page.get_by_role("button", name="Add passkey").click()
        expect(page.get_by_text("not used yet")).to_be_visible()
        assert len(session.send("WebAuthn.getCredentials", {"authenticatorId": authenticator})["credentials"]) == 1

        page.context.clear_cookies()
        reach_code(page, url, account)
        page.get_by_role("button", name="Use a passkey").click()
        page.wait_for_url(f"{url}/")
        page.goto(f"{url}/account/")
        expect(page.locator("form.spread").filter(has_text="Laptop")).to_contain_text("last used")

        # A passkey of nobody: the browser has none, and the page says so.
        session.send("WebAuthn.clearCredentials", {"authenticatorId": authenticator})
        session.send("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": True})
        page.context.clear_cookies()
        reach_code(page, url, account)
        page.get_by_role("button", name="Use a passkey").click()
        expect(page.get_by_text("The browser did not use a passkey.")).to_be_visible()
    actions = list(AuditEntry.objects.filter(actor=user).values_list("action", flat=True).order_by("id"))
    assert actions == ["second_factor_added", "recovery_code_used", "signed_in", "passkey_added", "signed_in"]
