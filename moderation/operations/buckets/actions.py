"""Actions on a bucket: each is a run of a job, requested by an operator, recorded, and never started twice."""

from __future__ import annotations

from dataclasses import dataclass

from chatstore.domain.errors import ChatstoreError, NotFound
from chatstore.domain.health import BucketState
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import pgettext_lazy
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.bucket_jobs.compaction import Obstacle, Remedy, find_obstacle
from chatstore.operations.health.channel_health import BucketHealth
from chatstore.operations.rights import MAINTAIN, require_channel
from moderation.operations.access.maintenance_acts import request_run


@dataclass(frozen=True, slots=True)
class Action:
    """Action on a bucket. job: name of the registered job. button, description: UI text."""

    slug: str
    job: str
    button: str
    description: str


ACTIONS = (
    Action(
        "probe",
        "probe",
        pgettext_lazy("action on a bucket", "Probe now"),
        _("Reads the newest page as users do, then all IDs, and records the cost. Changes nothing."),
    ),
    Action(
        "verify",
        "verify",
        pgettext_lazy("action on a bucket", "Check for live rows"),
        _("Reads the whole bucket at quorum and updates the ledger, so that readers skip it if it has no live rows."),
    ),
    Action(
        "measure",
        "measure",
        pgettext_lazy("action on a bucket", "Refresh stats"),
        _(
            "Every replica compares this bucket with the others, without changing data. "
            "This refreshes Cassandra’s own figures for it: size and tombstones."
        ),
    ),
    Action(
        "repair",
        "repair_bucket",
        pgettext_lazy("action on a bucket", "Repair"),
        _("Runs a full repair of this bucket only. Afterwards all replicas have the same data and deletes."),
    ),
    Action(
        "rewrite",
        "rewrite",
        pgettext_lazy("action on a bucket", "Rewrite"),
        _(
            "Rewrites the live rows above one delete of everything older, which removes all tombstones below it. "
            "Messages don’t change. The channel is locked meanwhile, and its other jobs wait."
        ),
    ),
    Action(
        "compact",
        "compact",
        pgettext_lazy("action on a bucket", "Compact"),
        _("Removes tombstones that every replica has from disk, one node after the other."),
    ),
)


@dataclass(frozen=True, slots=True)
class Offer:
    """Action as the page offers it. blocked_reason: why it is not available now; empty if it is."""

    action: Action
    blocked_reason: str = ""
    is_recommended: bool = False


def offers_for(channel_id: int, health: BucketHealth) -> list[Offer]:
    """Return every action, with the reason if it is known to be unavailable; first the recommended one, if any."""
    obstacle = _obstacle_to_compaction(channel_id, health)
    recommended = _recommended(health, obstacle)
    offers = [
        Offer(action, _blocked_reason(action, health, obstacle), action.slug == recommended) for action in ACTIONS
    ]
    return sorted(offers, key=lambda offer: not offer.is_recommended)


def _obstacle_to_compaction(channel_id: int, health: BucketHealth) -> Obstacle | None:
    if not health.was_written:
        return None
    try:
        return find_obstacle(channel_id, health.bucket)
    except ChatstoreError as error:
        return Obstacle(_("It is not known whether this is possible now. %(error)s", error=error.text))


def _recommended(health: BucketHealth, obstacle: Obstacle | None) -> str:
    """Return the action that mends the bucket's state; "" for none. obstacle: why it cannot be compacted now."""
    if health.state == BucketState.UNKNOWN:
        return "verify"
    if health.state != BucketState.TOMBSTONES:
        return ""
    if obstacle is None:
        return "compact"
    if obstacle.remedy is Remedy.REPAIR:
        return "repair"
    # Until gc_grace has passed, a rewrite lowers what a read scans. Pages skip buckets without live rows.
    return "rewrite" if obstacle.remedy is Remedy.GC_GRACE and not health.known.is_skipped else ""


def _blocked_reason(action: Action, health: BucketHealth, obstacle: Obstacle | None) -> str:
    if not health.was_written:
        return _("Nothing was ever written to this bucket.")
    return obstacle.reason if obstacle and action.slug == "compact" else ""


def run_bucket_action(slug: str, channel_id: int, bucket: int, *, actor: User) -> JobRun:
    """Request the run of an action. Raises `NotFound` for an unknown action or channel, and what `request_run` does."""
    require_channel(actor, MAINTAIN, channel_id)
    for action in ACTIONS:
        if action.slug == slug:
            return request_run(action.job, actor=actor, subject=f"{channel_id}:{bucket}")
    raise NotFound(_("There is no bucket action called “%(name)s”.", name=slug))
