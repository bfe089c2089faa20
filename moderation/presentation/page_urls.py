"""URLs of pages whose only parts are IDs, for lists: `reverse` would resolve each one separately; links to pass on."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlencode

from django.conf import settings
from django.urls import get_script_prefix, reverse

_PLACEHOLDERS = (11111111111111111, 22222222222222222)
"""IDs that occur in no other part of a URL."""


def url_of(name: str, *ids: int) -> str:
    """Return what `reverse` returns: ("message", 1, 2) → "/channels/1/2/"."""
    return _template(name, len(ids), get_script_prefix()).format(*ids)


def invitation_link(token: str) -> str:
    """Return the link of an invitation, with its host. The token is in the query, which access logs leave out."""
    return f"{settings.BASE_URL}{reverse('invitation')}?{urlencode({'token': token})}"


@lru_cache(maxsize=64)
def _template(name: str, count: int, _prefix: str) -> str:
    """Return the URL with a placeholder for each ID. The prefix only belongs to the key: `reverse` adds it."""
    url = reverse(name, args=_PLACEHOLDERS[:count])
    for placeholder in _PLACEHOLDERS[:count]:
        url = url.replace(str(placeholder), "{}")
    return url
