"""What an operator can do about a bucket: each a job's run, asked for, recorded, and not begun twice."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from chatstore.domain.errors import ChatstoreError, NotFound
from chatstore.models import JobRun
from chatstore.operations.bucket_jobs.compaction import why_not_compact
from chatstore.operations.health.channel_health import BucketHealth
from chatstore.operations.jobs.runs import ask_run


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do with a bucket. job: as settings name it. button, words: what happens, for people."""

    slug: str
    job: str
    button: str
    words: str


ACTIONS = (
    Action(
        "probe",
        "probe",
        "Probe now",
        "Reads its newest page as people do, then all of its ids, and notes what that cost. It changes nothing.",
    ),
    Action(
        "verify",
        "verify",
        "Verify what lives here",
        "Reads all of it once at quorum and tells the ledger, so that pages pass it by when nothing lives there.",
    ),
    Action(
        "measure",
        "measure",
        "Measure it",
        "Has every replica compare this bucket with the others, without changing data: "
        "Cassandra's own figures of it, size and tombstones, are filled anew.",
    ),
    Action(
        "repair",
        "repair_bucket",
        "Repair it",
        "Full repair of this bucket alone: all replicas hold the same afterwards, its deletes too.",
    ),
    Action(
        "rewrite",
        "rewrite",
        "Write it again",
        "What lives here is written again above one delete of everything older, which takes all tombstones below "
        "it away. Messages stay as they are. The channel is held for it, and other jobs there wait.",
    ),
    Action(
        "compact",
        "compact",
        "Compact its tombstones away",
        "Takes tombstones that every replica has seen off the disk, on every node back to back.",
    ),
)


@dataclass(frozen=True, slots=True)
class Offer:
    """An action as the page offers it. why_not: why it cannot be done now; empty when it can."""

    action: Action
    why_not: str = ""


def offers_for(channel_id: int, health: BucketHealth) -> list[Offer]:
    """Every action, with why not where that is known already."""
    return [Offer(action, _why_not(action, channel_id, health)) for action in ACTIONS]


def _why_not(action: Action, channel_id: int, health: BucketHealth) -> str:
    if not health.was_written:
        return "Nothing was ever written here."
    if action.slug != "compact":
        return ""
    try:
        return why_not_compact(channel_id, health.bucket)
    except ChatstoreError as error:
        return f"Whether it can be done is not known now. {error}"


def act_on_bucket(slug: str, channel_id: int, bucket: int, *, actor: User) -> JobRun:
    """Asks for the run of an action. Raises `NotFound` for one that there is none of, and as `ask_run`."""
    for action in ACTIONS:
        if action.slug == slug:
            return ask_run(action.job, actor=actor, subject=f"{channel_id}:{bucket}")
    raise NotFound(f"There is nothing called {slug!r} to do with a bucket.")
