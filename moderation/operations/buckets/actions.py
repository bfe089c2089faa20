"""Actions on a bucket: each is a run of a job, requested by an operator, recorded, and never started twice."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.conf import settings

from chatstore.domain.buckets import BucketKey, format_bucket
from chatstore.domain.errors import ChatstoreError, NotFound
from chatstore.domain.health import BucketState, KnownBucket
from chatstore.domain.live import Live
from chatstore.domain.runs import BUCKET_REPAIR
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import pgettext_lazy
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.bucket_jobs.compaction import Obstacle, Remedy, find_obstacle, find_obstacles
from chatstore.operations.health.channel_health import BucketHealth
from chatstore.operations.rights import MAINTAIN, require_channel
from chatstore.store.ledger import read_live_in
from moderation.operations.access.maintenance_acts import request_run
from moderation.operations.access.visibility import Actor, may_in, visible_channels


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
        BUCKET_REPAIR,
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

_BY_SLUG = {action.slug: action for action in ACTIONS}

REPAIR = _BY_SLUG["repair"]


@dataclass(frozen=True, slots=True)
class Offer:
    """Action as the page offers it. blocked_reason: why it is not available now; empty if it is."""

    action: Action
    blocked_reason: str = ""
    is_recommended: bool = False


def offers_for(channel_id: int, health: BucketHealth) -> list[Offer]:
    """Return every action, with the reason if it is known to be unavailable; first the recommended one, if any."""
    obstacle = _obstacle_to_compaction(channel_id, health)
    recommended = _recommended(health.state, obstacle, is_skipped=health.known.is_skipped)
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


def maintainable_buckets(user: Actor, keys: Collection[BucketKey]) -> set[BucketKey]:
    """Return those of the buckets in which the user may request runs."""
    if not keys:
        return set()
    visible = visible_channels(user).filter(pk__in={channel_id for channel_id, _bucket in keys})
    allowed = {channel.pk for channel in visible if may_in(user, MAINTAIN, channel)}
    return {key for key in keys if key[0] in allowed}


def recommend_actions(keys: Collection[BucketKey]) -> dict[BucketKey, Action]:
    """Return the action that the page of each bucket recommends; of the ledger each bucket is read, at once.

    keys: buckets over the limit of tombstones. Left out are those without a recommendation, and all of them while a
    store is unavailable.
    """
    if not keys:
        return {}
    try:
        obstacles = find_obstacles(keys)
        # Only while gc_grace lasts it matters whether pages skip the bucket.
        lives = read_live_in([key for key in keys if _waits_for_gc_grace(obstacles[key])])
    except ChatstoreError:
        return {}
    slugs = {
        key: _recommended(BucketState.TOMBSTONES, obstacles[key], is_skipped=_is_skipped(lives.get(key)))
        for key in keys
    }
    return {key: _BY_SLUG[slug] for key, slug in slugs.items() if slug}


def _is_skipped(live: Live | None) -> bool:
    return KnownBucket(live, may_be_unlisted=not settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN).is_skipped


def _waits_for_gc_grace(obstacle: Obstacle | None) -> bool:
    return obstacle is not None and obstacle.remedy is Remedy.GC_GRACE


def _recommended(state: BucketState, obstacle: Obstacle | None, *, is_skipped: bool) -> str:
    """Return the action that mends a bucket's state; "" for none.

    obstacle: why it cannot be compacted now. is_skipped: whether pages skip it; matters only until gc_grace has passed.
    """
    if state == BucketState.UNKNOWN:
        return "verify"
    if state != BucketState.TOMBSTONES:
        return ""
    if obstacle is None:
        return "compact"
    if obstacle.remedy is Remedy.REPAIR:
        return "repair"
    # Until gc_grace has passed, a rewrite lowers what a read scans. Pages skip buckets without live rows.
    return "rewrite" if _waits_for_gc_grace(obstacle) and not is_skipped else ""


def _blocked_reason(action: Action, health: BucketHealth, obstacle: Obstacle | None) -> str:
    if not health.was_written:
        return _("Nothing was ever written to this bucket.")
    return obstacle.reason if obstacle and action.slug == "compact" else ""


def run_bucket_action(slug: str, channel_id: int, bucket: int, *, actor: User) -> JobRun:
    """Request the run of an action. Raises `NotFound` for an unknown action or channel, and what `request_run` does."""
    require_channel(actor, MAINTAIN, channel_id)
    if slug not in _BY_SLUG:
        raise NotFound(_("There is no bucket action called “%(name)s”.", name=slug))
    return request_run(_BY_SLUG[slug].job, actor=actor, subject=format_bucket(channel_id, bucket))
