"""Each night old previews lose their steps and manifests, old purges their manifests, and old runs are deleted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.conf import settings
from django.test import Client

from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import RunStopped, claim_run
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Hold, ManifestBucket, ManifestSummary, Purge, Step
from moderation.operations.access.audit import record_action, save_with_next_id
from moderation.operations.purging.pruning import prune
from tests.chatstore.channels import fresh_id
from tests.chatstore.operations.jobs import make_ended_run
from tests.moderation.channels import everything, make_channel, preview
from tests.moderation.many_steps import make_large_purge
from tests.moderation.stored_sums import store_sums


def run_prune() -> None:
    run = JobRun.objects.create(job="prune", due_at=postgres_now())
    claim = claim_run(run.pk)
    assert claim is not None
    claim.end(prune(claim))


def make_old(mona: User, state: PurgeState, *, days: int, author: int = 1) -> Purge:
    purge = make_large_purge(mona, counted=2, pending=1, state=state, author=author)
    at = postgres_now() - dt.timedelta(days=days)
    Purge.objects.filter(pk=purge.pk).update(created_at=at)
    Step.objects.filter(purge=purge, state="counted").update(quarantined_at=at, counted_at=at)
    store_sums()
    return purge


def kept(purge: Purge) -> tuple[int, int]:
    """Return the numbers of steps and manifest buckets that are left."""
    return Step.objects.filter(purge=purge).count(), ManifestBucket.objects.filter(purge=purge).count()


def test_a_preview_that_was_not_confirmed_loses_its_steps_but_not_its_place_in_the_audit_log(
    mona: User, sign_in: Callable[[User], Client]
) -> None:
    old, recent = (make_old(mona, PurgeState.EXPIRED, days=settings.PREVIEW_DAYS + days) for days in (1, -1))
    ready = make_old(mona, PurgeState.READY, days=settings.PREVIEW_DAYS + 1)
    record_action("purge_drafted", actor=mona, purge=old)
    run_prune()
    assert [kept(purge) for purge in (old, recent, ready)] == [(0, 0), (3, 3), (3, 3)]
    assert AuditEntry.objects.filter(purge=old).exists()
    assert sign_in(mona).get(f"/purges/{old.pk}/").status_code == 200


def test_the_summary_of_a_preview_that_matched_nothing_is_deleted(mona: User) -> None:
    old = preview(mona, everything(make_channel()))
    assert (old.state, kept(old)) == (PurgeState.NOTHING_MATCHED, (0, 0))
    assert ManifestSummary.objects.filter(purge=old).exists()
    created_at = postgres_now() - dt.timedelta(days=settings.PREVIEW_DAYS + 1)
    Purge.objects.filter(pk=old.pk).update(created_at=created_at)
    run_prune()
    assert not ManifestSummary.objects.filter(purge=old).exists()


def test_a_purge_that_can_no_longer_be_undone_loses_its_manifest_and_keeps_its_steps(
    mona: User, sign_in: Callable[[User], Client]
) -> None:
    days = settings.MANIFEST_DAYS + 1
    old = make_old(mona, PurgeState.UNDO_EXPIRED, days=days)
    done = make_old(mona, PurgeState.DONE, days=days)
    run_prune()
    assert (kept(old), kept(done)) == ((3, 0), (3, 3))
    assert sign_in(mona).get(f"/purges/{old.pk}/").status_code == 200


def test_a_held_purge_keeps_its_manifest_until_the_hold_is_lifted(mona: User) -> None:
    author = fresh_id()
    purge = make_old(mona, PurgeState.UNDO_EXPIRED, days=settings.MANIFEST_DAYS + 1, author=author)
    hold = Hold(author_id=author, reason="case", placed_by=mona)
    save_with_next_id(hold)
    run_prune()
    assert kept(purge) == (3, 3)
    Hold.objects.filter(pk=hold.pk).update(lifted_at=postgres_now(), lifted_by=mona)
    run_prune()
    assert kept(purge) == (3, 0)


def test_old_runs_are_deleted_but_the_last_of_each_job_and_those_that_are_retried(mona: User) -> None:
    job, old = f"pruned-{fresh_id()}", postgres_now() - dt.timedelta(days=settings.RUN_DAYS + 1)
    last = make_ended_run(job, at=old)
    about_bucket, recent, retried = (
        JobRun.objects.create(job=job, subject="1:1", state="done", due_at=old, ended_at=at)
        for at in (old, postgres_now(), old)
    )
    JobRun.objects.create(job=job, subject="1:1", due_at=postgres_now(), retry_of=retried)
    run_prune()
    assert not JobRun.objects.filter(pk=about_bucket.pk).exists()
    assert JobRun.objects.filter(pk__in=[last.pk, recent.pk, retried.pk]).count() == 3
    JobRun.objects.filter(job=job, retry_of__isnull=False).delete()
    JobRun.objects.filter(job=job).delete()


def test_a_stopped_run_continues_the_next_night(mona: User) -> None:
    old = [make_old(mona, PurgeState.EXPIRED, days=settings.PREVIEW_DAYS + 1) for _ in range(2)]
    run = JobRun.objects.create(job="prune", due_at=postgres_now())
    claim = claim_run(run.pk)
    assert claim is not None
    JobRun.objects.filter(pk=run.pk).update(stop_requested_by=mona)
    with pytest.raises(RunStopped):
        prune(claim)
    assert max(kept(purge) for purge in old) == (3, 3)
    run_prune()
    assert [kept(purge) for purge in old] == [(0, 0), (0, 0)]
