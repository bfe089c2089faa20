"""Two Content-Security-Policies by path: a strict one, and a wider one for the admin alone."""

from __future__ import annotations

from typing import Any

from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

STRICT: dict[str, list[str]] = {
    "default-src": ["'none'"],
    # Our scripts and htmx are served by this site; none is inline.
    "script-src": ["'self'"],
    # One stylesheet file; bars use SVG attributes and <progress>, never style="".
    "style-src": ["'self'"],
    # The favicon. From the hosts that the settings allow: icons of guilds, and images of messages if a viewer asks.
    "img-src": ["'self'", *(f"https://{host}" for host in sorted(settings.MEDIA_HOSTS))],
    # htmx requests fragments: rows of a timeline, a purge's progress.
    "connect-src": ["'self'"],
    # Every form posts to this site.
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
}
"""Sources that our own pages need, and nothing else."""

ADMIN: dict[str, list[str]] = {
    **STRICT,
    # Unfold's Alpine evaluates the expressions in its attributes.
    "script-src": ["'self'", "'unsafe-eval'"],
    # Unfold sets its palette and its widths with style attributes.
    "style-src": ["'self'", "'unsafe-inline'"],
    # Icons of form controls are data: URLs in Unfold's stylesheet.
    "img-src": ["'self'", "data:"],
    # Unfold ships the Inter and Material Symbols fonts as files.
    "font-src": ["'self'"],
}
"""Sources that Unfold needs, determined from a browser's reports; for the admin's pages only."""


class CSPByPath(CSPMiddleware):
    """Middleware that sends the admin's policy for the admin's pages and the strict one for all others."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        """Return the policy of the request's path."""
        parts: PolicyParts = super().get_policy_parts(request, response, report_only)
        if not report_only and parts.config is None:
            in_admin = request.path_info.startswith(reverse("admin:index"))
            config: dict[str, Any] = dict(ADMIN if in_admin else STRICT)
            parts.config = config
        return parts
