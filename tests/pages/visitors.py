"""Clients at addresses of their own: wrong links and passwords make an address pause, also in the next run."""

from __future__ import annotations

import secrets

from django.test import Client


def visitor_from_elsewhere() -> Client:
    """Return a client whose address no other test has."""
    return Client(REMOTE_ADDR=f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1")
