"""Checks after the purge and after its undo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from django.contrib.auth.models import User
from django.test import Client

from chatstore.models import Channel
from chatstore.operations.coordination.channel_lock import holder_of
from moderation.domain.planner import Way
from moderation.domain.states import FINAL_STEPS, StepKind
from moderation.models import AuditEntry, Step
from moderation.operations.steps.totals import sum_of
from moderation.operations.undo.requests import UndoPart, ask_undo, sum_of_undo
from tests.soak.scene import TALKER, Scene, ids_of, picture_of, read_through, rows_of


def check_purged(scene: Scene, said: Mapping[int, str], moderator: User) -> None:
    """Check that exactly the manifest is deleted, with every strategy, correct counts, and each step counted once."""
    assert picture_of(scene.channels, scene.buckets) == scene.rest, (
        "the remaining messages are not the expected survivors"
    )
    total = sum_of(scene.purge)
    assert (total.deleted, total.already_gone, total.held, total.failed) == (total.manifest, 0, 0, 0), total
    steps = Step.objects.filter(purge_id=scene.purge.id)
    ways = Counter(steps.values_list("how", flat=True))
    assert ways.keys() == {Way.ROWS, Way.RANGES, Way.DROP, Way.REWRITE}, ways
    acts = Counter(AuditEntry.objects.filter(purge=scene.purge).values_list("act", flat=True))
    assert acts["step_counted"] == steps.count(), acts
    assert acts["purge_finished"] == 1, acts
    check_channels(scene, said, moderator)


def check_undone(scene: Scene, said: Mapping[int, str], moderator: User, *, wait: Callable[[], None]) -> None:
    """Check that everything is restored, with every column equal and in the same order."""
    undo = ask_undo(scene.purge.id, moderator=moderator, part=UndoPart())
    wait()
    total = sum_of_undo(undo)
    assert total.asked == total.restored == scene.purge.manifest, total
    acts = Counter(AuditEntry.objects.filter(purge=scene.purge).values_list("act", flat=True))
    assert acts["undo_step_counted"] == Step.objects.filter(undo=undo).count(), acts
    assert acts["undo_finished"] == 1, acts
    assert picture_of(scene.channels, scene.buckets) == scene.whole, (
        "the restored messages differ from the deleted ones"
    )
    check_channels(scene, said, moderator)


def check_channels(scene: Scene, said: Mapping[int, str], moderator: User) -> None:
    """Check that no step is open, no channel locked, no post lost, and that pages show all messages."""
    open_steps = Step.objects.filter(purge_id=scene.purge.id).exclude(state__in=FINAL_STEPS)
    assert not open_steps.exclude(kind=StepKind.REWRITE).exists()
    for channel in scene.channels:
        assert holder_of(channel.id) is None, holder_of(channel.id)
        check_pages(channel, scene, moderator)
    kept = dict(said)
    talk = {
        row[0]: row[3] for bucket in scene.buckets for row in rows_of(scene.channels[0], bucket) if row[1] == TALKER
    }
    lost = kept.keys() - talk.keys()
    assert not lost, f"{len(lost)} messages posted during the run are lost"


def check_pages(channel: Channel, scene: Scene, moderator: User) -> None:
    """Check that paging back shows every message readable at quorum, and that the web pages answer."""
    standing = ids_of(channel, scene.buckets)
    shown = read_through(channel)
    assert standing <= shown, f"{len(standing - shown)} messages are on no page"
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(moderator)
    for address in (f"/channels/{channel.id}/", f"/purges/{scene.purge.id}/"):
        assert client.get(address).status_code == 200, address
