"""Where the parts of an entry of the audit log are: on a phone none lies below the button of its details, or is cut."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from django.db import transaction

from chatstore.models import ChatUser
from moderation.operations.access.audit import record_action
from tests.chatstore.channels import fresh_id
from tests.conftest import make_user
from tests.moderation.channels import make_channel
from tests.pages.serving import Site, browse_as, create_account, in_thread

OVERLAPS = """line => {
  const button = line.querySelector("summary").getBoundingClientRect();
  return [...line.querySelectorAll("a, .audit-outcome")].filter(one => {
    const {right, bottom, top} = one.getBoundingClientRect();
    return right > button.left && top < button.bottom && bottom > button.top || one.scrollWidth > one.clientWidth + 1;
  }).map(one => one.textContent);
}"""
"""Texts of the parts of an entry that are cut, or that its button lies over."""


DOTS = """outcome => {
  const read = () => {
    const name = outcome.nextElementSibling;
    return getComputedStyle(outcome, "::after").content + (name ? getComputedStyle(name, "::before").content : "");
  };
  const before = read();
  while (outcome.nextElementSibling) outcome.nextElementSibling.remove();
  return [before, read()];
}"""
"""What is between an outcome and a name, and what follows it alone, where it has nothing to part."""


def resolve_reports(names: Sequence[str]) -> None:
    for name in names:
        resolve_report(name)


def resolve_report(name: str) -> None:
    user = ChatUser.objects.create(id=fresh_id(), name=name)
    with transaction.atomic():
        record_action(
            "report_resolved",
            actor=make_user("mona", group="moderators"),
            channel_id=make_channel(guild="Harbour").pk,
            chat_user_id=user.pk,
            details={"resolution": "kept", "reason": "Within the rules"},
        )


def test_names_and_outcomes_stand_beside_the_button_of_details(site: Site) -> None:
    # One of the widths ends below the button unless its place is kept free.
    names = [secrets.token_hex(8)[:length] for length in range(4, 15)]
    in_thread(resolve_reports, names)
    with browse_as(create_account("ada"), site) as page:
        page.set_viewport_size({"width": 360, "height": 800})
        page.goto(f"{site.url}/audit/")
        lines = page.locator(".audit-line", has=page.locator("summary"))
        overlaps = {name: lines.filter(has_text=name).first.evaluate(OVERLAPS) for name in names}
        assert {name: found for name, found in overlaps.items() if found} == {}


def test_a_dot_parts_the_outcome_of_a_report_from_the_name_which_is_below_it_on_wide_screens(site: Site) -> None:
    name = secrets.token_hex(6)
    in_thread(resolve_report, name)
    with browse_as(create_account("ada"), site) as page:
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{site.url}/audit/")
            outcome = page.locator(".audit-line").filter(has_text=name).locator(".audit-outcome")
            above, below = outcome.bounding_box(), outcome.locator("xpath=following-sibling::*[1]").bounding_box()
            assert above is not None
            assert below is not None
            assert width == 360 or below["y"] >= above["y"] + above["height"] - 1
            # This removes the name, by which the line was found.
            dots = outcome.evaluate(DOTS)
            assert ["·" in dot for dot in dots] == [width == 360, False], width


def test_a_reason_follows_the_name_that_it_is_about_on_wide_screens(site: Site) -> None:
    name = secrets.token_hex(6)
    in_thread(resolve_report, name)
    with browse_as(create_account("ada"), site) as page:
        for width in (800, 1280, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{site.url}/audit/")
            line = page.locator(".audit-line").filter(has_text=name)
            left, bottom = line.locator(".audit-what > a", has_text=name).evaluate(
                "one => [one.getBoundingClientRect().left, one.parentElement.getBoundingClientRect().bottom]"
            )
            first, top = line.locator(".audit-reason > bdi").evaluate(
                "one => [one.getBoundingClientRect().left, one.parentElement.getBoundingClientRect().top]"
            )
            # A quotation mark is before it.
            assert width < 1180 or 0 <= first - left <= 10, width
            assert 0 <= top - bottom <= 2, width
