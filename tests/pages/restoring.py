"""Restoring through the page that asks what to restore, and why."""

from __future__ import annotations

from django.test import Client

from tests.pages.test_without_script import read_fields

REASON = "Appeal accepted"


def restore(client: Client, url: str) -> str:
    """Open the page that asks, answer it, and return the URL that it redirects to."""
    asked = client.get(url)
    assert asked.status_code == 200
    action = url.partition("?")[0]
    answered = client.post(action, {**read_fields(asked.content.decode(), action), "reason": REASON})
    assert answered.status_code == 302
    return answered["Location"]
