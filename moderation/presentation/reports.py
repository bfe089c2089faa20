"""Words of members' reports: categories, outcomes, and counts that end at a limit."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from chatstore.domain.reports import ReportCategory, Resolution
from moderation.presentation.formats import format_number

CATEGORY_LABELS: dict[ReportCategory, Promise] = {
    ReportCategory.SPAM: pgettext_lazy("category of a report", "spam"),
    ReportCategory.HARASSMENT: pgettext_lazy("category of a report", "harassment"),
    ReportCategory.HATE: pgettext_lazy("category of a report", "hate"),
    ReportCategory.SEXUAL: pgettext_lazy("category of a report", "sexual content"),
    ReportCategory.VIOLENCE: pgettext_lazy("category of a report", "violence"),
    ReportCategory.PRIVACY: pgettext_lazy("category of a report", "private information"),
    ReportCategory.OTHER: pgettext_lazy("category of a report", "other"),
}
RESOLUTION_LABELS: dict[Resolution, Promise] = {
    Resolution.REMOVED: gettext_lazy("message deleted"),
    Resolution.KEPT: gettext_lazy("message kept"),
    Resolution.NOTHING: gettext_lazy("no action"),
}


def default_reason(category: str) -> str:
    """Return the reason with which a reported message is deleted if the moderator enters none."""
    return _("Reported: %(category)s") % {"category": CATEGORY_LABELS[ReportCategory(category)]}


def format_capped(count: int, *, limit: int) -> str:
    """Return a count that was read up to a limit: (7, 100) → "7", (100, 100) → "99+"."""
    if count < limit:
        return format_number(count)
    return _("%(count)s+") % {"count": format_number(limit - 1)}
