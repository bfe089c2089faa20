"""Reasons that users give for what they do; stored with the action and in the audit log."""

from __future__ import annotations

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy

MAX_REASON_CHARACTERS = 1_000


def check_reason(reason: str, *, missing: str) -> str:
    """Return a reason without the whitespace around it.

    Raises `BadInput` if it is too long or has a NUL character, or with the text `missing` if it is empty.
    """
    reason = reason.strip()
    if not reason:
        raise BadInput(missing)
    if "\x00" in reason:
        raise BadInput(_("A reason cannot contain a NUL character. Remove it."))
    if len(reason) > MAX_REASON_CHARACTERS:
        raise BadInput(
            ngettext_lazy(
                "The reason is too long. Use at most %(count)s character.",
                "The reason is too long. Use at most %(count)s characters.",
                MAX_REASON_CHARACTERS,
            )
        )
    return reason
