"""What the audit log says about a request: its id, and the network address from which it acts."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.signals import request_finished
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from chatstore.client_address import client_address
from moderation.operations.access.audit import act_from

GetResponse = Callable[[HttpRequest], HttpResponse]


class IgnoreForeignIds:
    """Middleware that ignores the id of a request unless a trusted proxy gave it. Comes before the one that reads it.

    Otherwise anyone could give their requests the id of another one.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not settings.TRUSTED_PROXIES:
            request.META.pop("HTTP_X_REQUEST_ID", None)
        return self._get_response(request)


class NoteAddress:
    """Middleware that notes from which address the request acts."""

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        act_from(client_address(request))
        return self._get_response(request)


@receiver(request_finished)
def _forget_address(**_: object) -> None:
    """Not when the answer is returned: that of an export is recorded while it is sent."""
    act_from(None)
