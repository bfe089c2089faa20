"""The field for a reason, with templates that fill it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django import template
from django.conf import settings
from django.utils.translation import pgettext_lazy

from moderation.operations.access.reasons import MAX_REASON_CHARACTERS

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

register = template.Library()

_TEMPLATES: dict[str, Sequence[_StrPromise]] = {
    "purge": (
        pgettext_lazy("reason", "Raid clean-up"),
        pgettext_lazy("reason", "Spam"),
        pgettext_lazy("reason", "Request of the author"),
        pgettext_lazy("reason", "Illegal content"),
    ),
    "undo": (pgettext_lazy("reason", "Deleted by mistake"), pgettext_lazy("reason", "Appeal accepted")),
    "erasure": (pgettext_lazy("reason", "Personal data"), pgettext_lazy("reason", "Illegal content")),
    "hold": (pgettext_lazy("reason", "Requested by the authorities"), pgettext_lazy("reason", "Under investigation")),
    "rejection": (pgettext_lazy("reason", "Narrow the selection"),),
    "lift": (pgettext_lazy("reason", "Case closed"),),
    "second factor": (pgettext_lazy("reason", "Phone lost"), pgettext_lazy("reason", "New phone")),
}
"""Default templates by what the reason is for. The setting replaces those of purges."""


@register.inclusion_tag("moderation/shared/_reason.html")
def reason_field(
    kind: str,
    placeholder: str,
    hint: str = "",
    *,
    field_id: str = "reason",
    value: str = "",
    rows: int = 3,
    autofocus: bool = False,
) -> dict[str, object]:
    """Render label, field and templates. The templates need the script; without it they are not shown."""
    own = settings.REASON_TEMPLATES if kind == "purge" else ()
    return {
        "id": field_id,
        "templates": own or _TEMPLATES[kind],
        "placeholder": placeholder,
        "hint": hint,
        "value": value,
        "rows": rows,
        "autofocus": autofocus,
        "max_characters": MAX_REASON_CHARACTERS,
    }
