"""All whole pages that a user may open."""

from __future__ import annotations

from chatstore.models.users import User
from tests.pages.access_table import CASES
from tests.pages.conftest import PreviewedPurge
from tests.pages.visitors import visitor_from_elsewhere


def read_pages(user: User, made: PreviewedPurge) -> dict[str, str]:
    """Return the HTML of the table's whole pages for a user, by path, with objects that have been made for them."""
    client, names = visitor_from_elsewhere(), made.names
    client.force_login(user)
    pages = {}
    for _, method, url, _ in CASES:
        path = "/" + url.format(**names)
        if method == "GET" and "sign-out" not in path and "logout" not in path:
            response = client.get(path)
            if response.status_code == 200 and not response.streaming:
                html = response.content.decode()
                if html.lstrip()[:15].lower() == "<!doctype html>":
                    pages[path] = html
    return pages
