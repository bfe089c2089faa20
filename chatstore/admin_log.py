"""Changes in the admin, for what records them beside Django's own log: another app registers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Model
from django.http import HttpRequest

Recorder = Callable[[HttpRequest, str, Model, Any], None]
"""Receives the request, "added", "changed" or "deleted", the object, and Django's description of the change.

Called in the transaction of the change.
"""

_recorders: list[Recorder] = []


def register_recorder(recorder: Recorder) -> None:
    """Add a recorder. Apps do so in their `admin`."""
    _recorders.append(recorder)


class RecordedAdmin:
    """Mixin of a `ModelAdmin`, before it, whose changes are passed on. It deletes nothing in bulk."""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Log an addition."""
        _record(request, "added", obj, message)
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Log a change, of a password too."""
        _record(request, "changed", obj, message)
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Log deletions."""
        for obj in queryset:
            _record(request, "deleted", obj, [])
        return super().log_deletions(request, queryset)  # type: ignore[misc]


def _record(request: HttpRequest, change: str, obj: Model, message: Any) -> None:
    for recorder in _recorders:
        recorder(request, change, obj, message)
