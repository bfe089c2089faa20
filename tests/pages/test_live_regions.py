"""What changes on a page by itself, or by what its user selects, is in a live region: screen readers say it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models.users import User
from tests.moderation.raids import forget_raids, write_raid
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]

STATUS, POLITE = 'role="status"', 'aria-live="polite"'

REGIONS = {
    "the number of selected messages": ("/channels/{channel}/", "<span [^>]*data-count", STATUS),
    "what arrived, or was deleted or restored": ("/channels/{channel}/", '<p [^>]*id="new-status"', STATUS),
    "the number of messages to exclude": ("/purges/{purge}/", "<span [^>]*data-count", STATUS),
    "the chart that was zoomed": ("/purges/{purge}/", '<p [^>]*class="times-title', POLITE),
    "the summary of a filter": ("/channels/{channel}/delete/", '<section [^>]*hx-post="/delete/summary/"', POLITE),
    "the first matches of a filter": ("/channels/{channel}/delete/", '<div [^>]*hx-post="/delete/matches/"', POLITE),
}
"""The page of each, the beginning of its element, and the attribute that makes it a live region."""


def assert_live(html: str, element: str, attribute: str) -> None:
    tags = re.findall(f"{element}[^>]*>", " ".join(html.split()))
    assert len(tags) == 1, f"{element}: {tags}"
    assert attribute in tags[0]


@pytest.mark.parametrize("region", REGIONS)
def test_it_is_announced(region: str, previewed: PreviewedPurge, sign_in: SignIn) -> None:
    path, element, attribute = REGIONS[region]
    html = sign_in(previewed.moderator).get(path.format(**previewed.names)).content.decode()
    assert_live(html, element, attribute)


def test_the_state_of_a_purge_is_announced_by_a_region_that_polls_do_not_replace(
    previewed: PreviewedPurge, sign_in: SignIn
) -> None:
    html = sign_in(previewed.moderator).get(f"/purges/{previewed.purge.pk}/").content.decode()
    assert re.search(r'<span role="status">\s*<span id="state">', html)


def test_what_is_selected_of_a_raid_and_whom_it_includes_is_announced(mona: User, sign_in: SignIn) -> None:
    raid = write_raid()
    html = sign_in(mona).get(f"/raids/{raid.channel.pk}/").content.decode()
    forget_raids()
    assert_live(html, "<p [^>]*data-selected", STATUS)
    assert_live(html, "<p [^>]*data-established-count", POLITE)
