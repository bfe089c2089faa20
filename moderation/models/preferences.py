"""Preferences of an account: language and time zone."""

from __future__ import annotations

from django.conf import settings
from django.db import models

DEFAULT_TIME_ZONE = "UTC"


class Preferences(models.Model):
    """An account's language and time zone. No row: the browser's language, and UTC.

    language: a code of `settings.LANGUAGES`; "" for the browser's. time_zone: a name of the IANA database.
    """

    account = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="preferences"
    )
    language = models.CharField(max_length=20, blank=True, default="")
    time_zone = models.CharField(max_length=60, default=DEFAULT_TIME_ZONE)

    class Meta:
        # No permissions: an account changes only its own preferences.
        default_permissions = ()
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"preferences of {self.account_id}"
