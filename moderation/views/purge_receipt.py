"""Context of the receipt that heads the page of a purge that has ended."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext

from chatstore.domain.buckets import bucket_days
from chatstore.models import Channel
from moderation.models import Purge
from moderation.operations.access.visibility import Actor
from moderation.operations.lookup.audit_log import VIEW_AUDIT
from moderation.operations.preview.manifest_summary import Summary
from moderation.operations.preview.purge_summary import FINAL_PURGES
from moderation.operations.steps.totals import PurgeTotals, RestoredCounts
from moderation.views.purge_preview import describe_plan

MAX_PLACES = 3


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """Messages with one outcome. css: classes of the row."""

    label: str
    count: int
    css: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Facts about a purge that has ended.

    places: the largest channels that the viewer may see, each with the day to open it at. lines: the outcomes,
    which add up to the manifest, and below the deleted ones how many of them were restored and are still deleted;
    those without messages are left out. kept: messages kept in the same periods; None: not counted. only_period:
    first and last day of these, if there is one. plan: how messages were to be deleted, as sentences. audit_url,
    evidence_url: "" if the viewer may not read the audit log.
    """

    places: Sequence[tuple[Channel, str]]
    other_places: int
    channel_count: int
    first_at: dt.datetime | None
    last_at: dt.datetime | None
    author_count: int
    kept: int | None
    only_period: tuple[dt.date, dt.date] | None
    lines: Sequence[ReceiptLine]
    plan: Sequence[str]
    max_tombstones: int
    audit_url: str
    evidence_url: str


def describe_receipt(
    user: Actor,
    purge: Purge,
    *,
    manifest: Summary,
    channels: Sequence[Channel],
    totals: PurgeTotals,
    restored: RestoredCounts,
) -> Receipt | None:
    """Return the receipt; None before the purge has ended.

    channels: those that the viewer may see. restored: what became of its messages since.
    """
    if purge.confirmed_at is None or purge.state not in FINAL_PURGES:
        return None
    may_audit = user.has_perm(VIEW_AUDIT)
    known = {channel.pk: channel for channel in channels}
    places = [
        (known[one.channel_id], bucket_days(one.first_bucket)[0].isoformat())
        for one in manifest.channels
        if one.channel_id in known
    ][:MAX_PLACES]
    return Receipt(
        places=places,
        other_places=manifest.channel_count - len(places),
        channel_count=manifest.channel_count,
        first_at=manifest.first_at,
        last_at=manifest.last_at,
        author_count=manifest.author_count,
        kept=manifest.survivors,
        only_period=manifest.only_period,
        lines=_list_outcomes(totals, restored),
        plan=describe_plan(manifest.strategies, is_over=True),
        max_tombstones=manifest.max_tombstones,
        audit_url=f"{reverse('audit')}?purge={purge.pk}" if may_audit else "",
        evidence_url=reverse("purge_evidence", args=[purge.pk]) if may_audit else "",
    )


def _list_outcomes(totals: PurgeTotals, restored: RestoredCounts) -> list[ReceiptLine]:
    lines = [
        ReceiptLine(gettext("Deleted"), totals.deleted),
        ReceiptLine(gettext("restored since"), restored.by_undos, css="part restored"),
        ReceiptLine(gettext("restored by an import"), restored.by_imports, css="part restored"),
        ReceiptLine(gettext("still deleted"), restored.still_deleted if restored.has_any else 0, css="part"),
        ReceiptLine(gettext("Already gone"), totals.already_gone),
        ReceiptLine(gettext("Kept by a hold"), totals.held),
        ReceiptLine(gettext("Failed"), totals.failed, css="failed"),
        ReceiptLine(gettext("Not deleted"), totals.left),
    ]
    return [line for line in lines if line.count or line is lines[0]]
