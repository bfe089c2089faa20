"""Reports of messages by members of the chat: their categories, their resolutions, and the check of their text."""

from __future__ import annotations

from enum import StrEnum

from chatstore.domain.errors import BadInput
from chatstore.domain.message_limits import check_text

MAX_REPORT_CHARACTERS = 1_000


class ReportCategory(StrEnum):
    """What a member reports a message for."""

    SPAM = "spam"
    HARASSMENT = "harassment"
    HATE = "hate"
    SEXUAL = "sexual"
    VIOLENCE = "violence"
    PRIVACY = "privacy"
    OTHER = "other"


class Resolution(StrEnum):
    """Outcome of the reports of a message. NOTHING: there was nothing to decide, such as for a message that is gone."""

    REMOVED = "removed"
    KEPT = "kept"
    NOTHING = "nothing"


def check_category(category: str) -> ReportCategory:
    """Return the category. Raises `BadInput` for an unknown one."""
    try:
        return ReportCategory(category)
    except ValueError:
        raise BadInput(f"the category must be one of {', '.join(ReportCategory)}") from None


def check_report_text(text: object) -> str:
    """Return the text of a report without the whitespace around it. Raises `BadInput`."""
    checked = check_text("text", text, maximum=MAX_REPORT_CHARACTERS)
    if "\x00" in checked:
        raise BadInput("text contains a null character")
    return checked.strip()
