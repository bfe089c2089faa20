"""Template tag of the menu."""

from __future__ import annotations

from django import template

from moderation.views.menu import may_open_admin

register = template.Library()


@register.simple_tag(takes_context=True)
def offers_admin(context: template.Context) -> bool:
    """Return whether the menu has an entry for the admin. Error pages may have no request."""
    request = context.get("request")
    return request is not None and may_open_admin(request.user)
