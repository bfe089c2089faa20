"""Pages that a test reads, which must be shown with status 200."""

from __future__ import annotations

from html import unescape

from django.test import Client


def read_html(client: Client, path: str, **headers: str) -> str:
    """Return the HTML of a page."""
    response = client.get(path, headers=headers)
    assert response.status_code == 200, response.content
    return response.content.decode()


def read_page(client: Client, path: str) -> str:
    """Return the HTML of a page with its character references replaced, to look for texts as they are written."""
    return unescape(read_html(client, path))
