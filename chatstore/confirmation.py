"""Whether the user of a session has confirmed recently that it is them, before an act that others cannot undo.

A view calls `require_confirmation` before it acts. `moderation.views.confirming` asks for the password or a code on a
page that repeats what was posted, so that nothing is lost.
"""

from __future__ import annotations

import time

from django.conf import settings
from django.http import HttpRequest

from chatstore.domain.errors import ConfirmationNeeded
from chatstore.domain.texts import gettext_lazy as _

_KEY = "confirmed_at"


def note_confirmation(request: HttpRequest, *, at: float | None = None) -> None:
    """Note that the user has just entered their password or a code, or did so at that Unix time."""
    request.session[_KEY] = time.time() if at is None else at


def require_confirmation(request: HttpRequest) -> None:
    """Raise `ConfirmationNeeded` unless they did so in the last `CONFIRM_MINUTES`."""
    confirmed_at = request.session.get(_KEY)
    if confirmed_at is None or not 0 <= time.time() - confirmed_at <= settings.CONFIRM_MINUTES * 60:
        raise ConfirmationNeeded(_("Confirm that it’s you."))
