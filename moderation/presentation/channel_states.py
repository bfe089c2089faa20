"""The state of a channel in words, with the reason: the same on its health page, in the table and in exports."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext_lazy

from chatstore.domain.buckets import bucket_days
from chatstore.domain.health import SLOW_FROM_US, ChannelState, KnownChannel
from moderation.presentation import formats
from moderation.presentation.texts import translate

LABELS: dict[ChannelState, str | Promise] = {
    ChannelState.MISSING_MESSAGES: pgettext_lazy("state of a channel", "Messages missing"),
    ChannelState.TOMBSTONES: pgettext_lazy("state of a channel", "Too many tombstones"),
    ChannelState.HEAVY: pgettext_lazy("state of a channel", "Too large"),
    ChannelState.SLOW: pgettext_lazy("state of a channel", "Slow"),
    ChannelState.UNKNOWN: pgettext_lazy("state of a channel", "Unknown"),
    ChannelState.HEALTHY: pgettext_lazy("state of a channel", "Healthy"),
}
"""The states, most severe first."""

_HEALTHY_SO_FAR = pgettext_lazy("state of a channel", "Healthy so far")


def label_state(state: ChannelState, known: KnownChannel) -> str:
    """Return a state in words: a channel without a count of tombstones is healthy only as far as it was measured."""
    is_proven = state != ChannelState.HEALTHY or known.are_tombstones_known
    return str(LABELS[state] if is_proven else _HEALTHY_SO_FAR)


def describe_state(state: ChannelState, known: KnownChannel, finding: str = "") -> str:
    """Return a state, its reason and the cost of the newest page. finding: summary of the one that it follows from.

    "Healthy. The newest page reads 51 rows and 0 tombstones in 2.4 ms."
    """
    reason, page = explain_state(state, known, finding), describe_page(known)
    words = {"state": label_state(state, known), "reason": reason, "page": page}
    if reason.startswith(page):
        return _("%(state)s. %(reason)s") % words
    return _("%(state)s. %(reason)s %(page)s") % words


def explain_state(state: ChannelState, known: KnownChannel, finding: str = "") -> str:
    """Return the reason for a state as a sentence: the finding that it follows from, if any, or the figures."""
    if finding:
        return translate(finding)
    if state == ChannelState.TOMBSTONES and known.tombstones is not None and known.tombstones_bucket is not None:
        return ngettext(
            "A full read of %(days)s scans %(count)s tombstone.",
            "A full read of %(days)s scans %(count)s tombstones.",
            known.tombstones,
        ) % {"days": _format_days(known.tombstones_bucket), "count": formats.format_number(known.tombstones)}
    if state == ChannelState.HEAVY and known.bytes is not None and known.bytes_bucket is not None:
        return _("The partition of %(days)s has %(size)s.") % {
            "days": _format_days(known.bytes_bucket),
            "size": formats.keep_together(formats.format_size(known.bytes)),
        }
    if state == ChannelState.SLOW and known.page_us is not None and known.page_us >= SLOW_FROM_US:
        limit = formats.keep_together(_("%(number)s ms") % {"number": formats.format_number(SLOW_FROM_US // 1000)})
        return _("%(page)s From %(limit)s on, a page is slow.") % {"page": describe_page(known), "limit": limit}
    if state == ChannelState.HEALTHY and not known.are_tombstones_known:
        return _("%(page)s Tombstones of its buckets were never counted.") % {"page": describe_page(known)}
    return describe_page(known)


def describe_page(known: KnownChannel) -> str:
    """Return what the newest page costs as a sentence. The tombstones of all buckets that it reads count."""
    if known.page_us is None:
        return _("The newest page was never measured.")
    costs = {
        "tombstones": _tombstones_of_page(known),
        "time": formats.keep_together(formats.format_milliseconds(known.page_us / 1000)),
    }
    if known.page_rows is None:
        return _("The newest page reads %(tombstones)s in %(time)s.") % costs
    rows = formats.keep_together(formats.format_count(known.page_rows, "row"))
    return _("The newest page reads %(rows)s and %(tombstones)s in %(time)s.") % {"rows": rows, **costs}


def _tombstones_of_page(known: KnownChannel) -> str:
    tombstones = formats.keep_together(formats.format_count(known.page_tombstones, "tombstone"))
    if known.page_buckets is None or known.page_buckets < 2:
        return tombstones
    buckets = formats.keep_together(formats.format_count(known.page_buckets, "bucket"))
    return _("%(tombstones)s from %(buckets)s") % {"tombstones": tombstones, "buckets": buckets}


def _format_days(bucket: int) -> str:
    return formats.format_days(*bucket_days(bucket))
