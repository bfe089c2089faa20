"""Middleware that activates the language and the time zone of the account for its request."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language_from_request

from moderation.models import Preferences
from moderation.models.preferences import DEFAULT_TIME_ZONE


class ActivatePreferences:
    """Activates language and time zone. Comes after Django's authentication, whose account it reads."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        preferences = _preferences_of(request)
        language = preferences.language if preferences.language in dict(settings.LANGUAGES) else ""
        with (
            translation.override(language or get_language_from_request(request)),
            timezone.override(_zone(preferences.time_zone)),
        ):
            response = self._get_response(request)
            patch_vary_headers(response, ("Accept-Language",))
            response.headers.setdefault("Content-Language", translation.get_language() or settings.LANGUAGE_CODE)
            return response


def _preferences_of(request: HttpRequest) -> Preferences:
    # An account without a row has no such attribute, nor has an anonymous user.
    return getattr(getattr(request, "user", None), "preferences", None) or Preferences()


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        # The system had this time zone when it was saved.
        return zoneinfo.ZoneInfo(DEFAULT_TIME_ZONE)
