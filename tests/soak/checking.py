"""Checks after the purge and after its undo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_owner
from moderation.domain.states import StepKind
from moderation.models import AuditEntry, Step
from moderation.operations.purging.sums_check import has_wrong_sums
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from tests.soak.scene import POSTER, Scene, ids_of, read_all_pages, rows_of, snapshot_of


def check_purged(scene: Scene, stored: Mapping[int, str], moderator: User) -> None:
    """Check that exactly the manifest is deleted, with every strategy, correct counts, and each step counted once."""
    assert snapshot_of(scene.channels, scene.buckets) == scene.rest, (
        "the remaining messages are not the expected survivors"
    )
    total = totals_of(scene.purge)
    assert (total.deleted, total.already_gone, total.held, total.failed) == (total.manifest, 0, 0, 0), total
    steps = Step.objects.filter(purge_id=scene.purge.id)
    strategies = Counter(steps.values_list("strategy", flat=True))
    assert strategies.keys() == scene.strategies, strategies
    actions = Counter(AuditEntry.objects.filter(purge=scene.purge).values_list("action", flat=True))
    assert actions["channel_purged"] == len(scene.channels), actions
    assert actions["purge_finished"] == 1, actions
    check_counted(scene, "channel_purged", steps=steps.count(), deleted=total.manifest)
    check_channels(scene, stored, moderator)


def check_undone(scene: Scene, stored: Mapping[int, str], moderator: User, *, wait: Callable[[], None]) -> None:
    """Check that everything is restored, with every column equal and in the same order."""
    undo = request_undo(scene.purge.id, moderator=moderator, part=UndoPart(), reason="Appeal accepted")
    wait()
    total = undo_totals_of(undo)
    assert total.requested == total.restored == scene.purge.manifest, total
    actions = Counter(AuditEntry.objects.filter(purge=scene.purge).values_list("action", flat=True))
    assert actions["undo_finished"] == 1, actions
    check_counted(scene, "channel_restored", steps=undo.steps.count(), restored=scene.purge.manifest)
    assert snapshot_of(scene.channels, scene.buckets) == scene.whole, (
        "the restored messages differ from the deleted ones"
    )
    check_channels(scene, stored, moderator)


def check_counted(scene: Scene, action: str, **counts: int) -> None:
    """Check that the entries of the channels add up, so that each step was counted once."""
    entries = AuditEntry.objects.filter(purge=scene.purge, action=action).values_list("details", flat=True)
    assert {name: sum(entry[name] for entry in entries) for name in counts} == counts


def check_channels(scene: Scene, stored: Mapping[int, str], moderator: User) -> None:
    """Check that no step is open, all sums are right, no channel locked, no post lost, and pages show all messages."""
    assert not scene.purge.steps.open().exclude(kind=StepKind.REWRITE).exists()
    assert not scene.purge.undo_steps.open().exists()
    assert not has_wrong_sums(scene.purge.id)
    for channel in scene.channels:
        assert lock_owner(channel.id) is None, lock_owner(channel.id)
        check_pages(channel, scene, moderator)
    kept = dict(stored)
    posted = {
        row[0]: row[3] for bucket in scene.buckets for row in rows_of(scene.channels[0], bucket) if row[1] == POSTER
    }
    lost = kept.keys() - posted.keys()
    assert not lost, f"{len(lost)} messages posted during the run are lost"


def check_pages(channel: Channel, scene: Scene, moderator: User) -> None:
    """Check that paging back shows every message readable at quorum, and that the web pages answer."""
    stored_ids = ids_of(channel, scene.buckets)
    shown = read_all_pages(channel)
    assert stored_ids <= shown, f"{len(stored_ids - shown)} messages are on no page"
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(moderator)
    for url in (f"/channels/{channel.id}/", f"/purges/{scene.purge.id}/"):
        assert client.get(url).status_code == 200, url
