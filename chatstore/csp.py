"""Two Content-Security-Policies, by path: a strict one, and a wider one for the admin alone."""

from __future__ import annotations

from typing import Any

from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

STRICT: dict[str, list[str]] = {
    "default-src": ["'none'"],
    # Our scripts and htmx are files of ours; none is inline.
    "script-src": ["'self'"],
    # One stylesheet, a file; bars are SVG attributes and <progress>, never style="".
    "style-src": ["'self'"],
    # The mark in the browser's tab. What messages link to is never loaded.
    "img-src": ["'self'"],
    # htmx fetches fragments: rows of a timeline, a purge's progress.
    "connect-src": ["'self'"],
    # Every form posts to this site.
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
}
"""What our own pages need, and nothing else."""

ADMIN: dict[str, list[str]] = {
    **STRICT,
    # Unfold's Alpine evaluates the expressions in its attributes.
    "script-src": ["'self'", "'unsafe-eval'"],
    # Unfold sets its palette and its widths with style attributes.
    "style-src": ["'self'", "'unsafe-inline'"],
    # Icons of form controls are data: URLs in Unfold's stylesheet.
    "img-src": ["'self'", "data:"],
    # Unfold brings the Inter and Material Symbols fonts as files.
    "font-src": ["'self'"],
}
"""What Unfold needs, seen in a browser's reports; for the admin's pages only."""


class CSPByPath(CSPMiddleware):
    """Sends the admin's policy under the admin's address and the strict one everywhere else."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        """The policy of the request's path."""
        parts: PolicyParts = super().get_policy_parts(request, response, report_only)
        if not report_only and parts.config is None:
            in_admin = request.path_info.startswith(reverse("admin:index"))
            config: dict[str, Any] = dict(ADMIN if in_admin else STRICT)
            parts.config = config
        return parts
