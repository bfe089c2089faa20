"""Failures of steps in plain words: what happened, and what to do. Pages have the stored error beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from django import template
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from chatstore.domain.texts import Text
from moderation.operations.purging.execution import WRITTEN_AGAIN
from moderation.operations.purging.failures import Failure
from moderation.operations.purging.quarantine import describe_unknown_columns
from moderation.operations.undo.restore import describe_not_restored

register = template.Library()

_PLAIN: dict[str, Promise] = {
    describe_unknown_columns(()).template: gettext_lazy(
        "This version of Chatstore cannot copy these messages completely, so it could not restore them. Ask an "
        "operator to update Chatstore, then retry."
    ),
    WRITTEN_AGAIN.template: gettext_lazy(
        "They came back after each deletion, because something writes them again. Retry. If that fails too, ask an "
        "operator."
    ),
    describe_not_restored(1).template: gettext_lazy("Try to restore them again. If that fails too, ask an operator."),
}
"""Explanations by the template of the error."""

_OTHER = gettext_lazy("This was not expected. Ask an operator, and show them the details.")


@register.filter
def plain_failure(error: str) -> str:
    """Return what happened to messages that a step failed to delete or restore, and what to do."""
    return str(_PLAIN.get(error.template if isinstance(error, Text) else "", _OTHER))


@register.filter
def plain_failures(rows: Iterable[tuple[Failure, object, object]]) -> list[tuple[bool, int, str]]:
    """Return the same of all failures of a purge, each once: (they were not restored, messages, what happened)."""
    counts: Counter[tuple[bool, str]] = Counter()
    for failure, *_ in rows:
        counts[failure.of_undo, plain_failure(failure.error)] += failure.count
    return [(of_undo, count, text) for (of_undo, text), count in counts.items()]
