"""Images from other hosts: which ones a page may load."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings


def may_load(url: str) -> bool:
    """Return whether a page may load an image: encrypted, and only from the hosts that the settings allow."""
    # A browser takes “\\” for “/”, and reads a name before the host as a user.
    if not settings.MEDIA_HOSTS or not url.startswith("https://") or "\\" in url:
        return False
    try:
        return urlsplit(url).netloc.lower() in settings.MEDIA_HOSTS
    except ValueError:
        return False
