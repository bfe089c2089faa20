"""Purges in lists, and the rows of a preview's plan, as HTML: pages have dozens or hundreds of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from django import template
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatstore.models import Channel
from moderation.domain.state_labels import AWAITING_APPROVAL
from moderation.domain.states import PurgeState
from moderation.operations.selection.summary import ListedProgress, ListedPurge
from moderation.presentation import formats
from moderation.presentation.html import dotted, fill, fill_each, fill_named, join
from moderation.presentation.page_urls import url_of
from moderation.templatetags.chat import ago, staff_name, state_chip, until_day, visible
from moderation.views.purge_preview import BucketRow

register = template.Library()

REASON_CHARACTERS = 120
"""Characters of a purge's reason that a list shows."""

_OUTCOMES: dict[str, Promise] = {
    AWAITING_APPROVAL: gettext_lazy("To be deleted once the purge is approved"),
    PurgeState.QUEUED: gettext_lazy("To be deleted"),
    PurgeState.RUNNING: gettext_lazy("Being deleted"),
    PurgeState.WAITING: gettext_lazy("Being deleted"),
    PurgeState.PAUSED: gettext_lazy("Not all deleted yet, paused"),
    PurgeState.CANCELLING: gettext_lazy("Deletion is being cancelled"),
    PurgeState.CANCELLED: gettext_lazy("Deletion was cancelled"),
    PurgeState.DONE: gettext_lazy("Deleted"),
    PurgeState.DONE_WITH_FAILURES: gettext_lazy("Deleted in part"),
    PurgeState.UNDOING: gettext_lazy("Deleted, now being restored"),
    PurgeState.UNDONE: gettext_lazy("Deleted, then restored"),
    PurgeState.PARTLY_UNDONE: gettext_lazy("Deleted, then restored in part"),
    PurgeState.UNDO_EXPIRED: gettext_lazy("Deleted, can no longer be restored"),
}
"""What has become of the messages of a purge, by the state that is shown. The labels of other states name it."""

_LINE_BREAK = SafeString("<br>\n")


@register.simple_tag
def purge_line(listed: ListedPurge, *, awaits: str = "") -> SafeString:
    """Render a purge of a list: what it deletes, its state, by whom, when and why.

    awaits: what a preview or a purge waits for, in place of its state.
    """
    purge = listed.purge
    notes = [staff_name(purge.moderator), ago(purge.created_at)]
    if listed.progress is not None:
        notes.insert(0, fill('<b class="progress-note">{}</b>', _format_progress(listed.progress)))
    if listed.still_deleted is not None:
        deleted, total = formats.format_number(listed.still_deleted), formats.format_number(purge.manifest)
        notes.append(fill_named(_("%(deleted)s of %(total)s deleted"), deleted=deleted, total=total))
    if listed.undo_until:
        notes.append(fill_named(_("can be restored until %(day)s"), day=until_day(listed.undo_until)))
    if purge.reason:
        notes.append(fill("“<bdi>{}</bdi>”", Truncator(visible(purge.reason)).chars(REASON_CHARACTERS)))
    return fill(
        '<div class="purge-line">\n<span class="spread">\n<a class="title" href="{}">{}</a>\n{}\n</span>\n'
        '<span class="dotted quiet small">\n{}\n</span>\n</div>\n',
        url_of("purge", purge.pk),
        visible(listed.title),
        fill('<span class="chip warning">{}</span>', awaits) if awaits else state_chip(purge, listed.state_label),
        dotted(notes),
    )


@register.filter
def outcome_label(listed: ListedPurge) -> str:
    """Return whether a purge has deleted its messages or will: "To be deleted"; "" if its state says so."""
    if listed.shown_state == PurgeState.WAITING and not (listed.progress and listed.progress.done):
        return str(_OUTCOMES[PurgeState.QUEUED])
    return str(_OUTCOMES.get(listed.shown_state, ""))


def _format_progress(progress: ListedProgress) -> str:
    return _("%(done)s of %(total)s done (%(percent)s %%)") % {
        "done": formats.format_number(progress.done),
        "total": formats.format_number(progress.total),
        "percent": formats.format_number(formats.round_percent(progress.done, progress.total)),
    }


@register.simple_tag(takes_context=True)
def period_rows(context: template.Context, rows: Iterable[BucketRow]) -> SafeString:
    """Render the plan of each bucket as a row: what is deleted there, what is kept, and how."""
    with_channel, with_tombstones = context["channel_count"] > 1, context["perms"]["chatstore"]["view_finding"]
    hidden = fill('<span class="quiet">{}</span>', _("a channel you cannot open"))

    # Many rows have the same channel, and many the same period.
    @cache
    def draw_channel(channel: Channel | None) -> SafeString:
        return fill("<td>\n{}\n</td>\n", fill("<bdi>{}</bdi>", visible(channel.full_name)) if channel else hidden)

    format_days = cache(formats.format_days)
    return fill_each(
        '<tr>\n{}<td class="nowrap">{}</td>\n<td class="num">{}</td>\n<td class="num">{}</td>\n'
        "<td>\n{}\n</td>\n{}</tr>",
        (
            (
                draw_channel(row.channel) if with_channel else "",
                format_days(row.first_day, row.last_day),
                formats.format_number(row.matched),
                "—" if row.survivors is None else formats.format_number(row.survivors),
                join(row.methods, _LINE_BREAK),
                fill('<td class="num">{}</td>\n', formats.format_number(row.tombstones)) if with_tombstones else "",
            )
            for row in rows
        ),
    )
