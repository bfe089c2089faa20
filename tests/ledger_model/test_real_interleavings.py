"""The same on real servers with the real operations, a hundred of them: every live message is on a page."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.runs import RunState
from chatstore.models import BucketDeletes, JobRun
from chatstore.models.users import User
from chatstore.operations.bucket_jobs import nightly_ledger
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.gateway.messages import post_message, withdraw_message
from chatstore.operations.jobs.runs import work_on_run
from chatstore.operations.ledger.refresh import try_refresh_bucket
from chatstore.store import ledger, messages
from chatstore.store.reading.reader import read_page
from moderation.models import Purge
from moderation.operations.undo.import_guard import DeletedIds, restore_on_import_as
from moderation.operations.undo.requests import UndoPart, can_be_undone, request_undo
from tests.imports.exports import make_export, make_raw, run_import
from tests.moderation.channels import choose, make_channel, now_ms, purge_now, run_to_end, write

BUCKETS = 12
A_BUCKET = 5
WHICH = st.integers(0, 999)

AUTHOR = 7_303
"""An import stores the names of authors, so this must not be a user of other tests."""


class Interleavings(RuleBasedStateMachine):
    moderator: ClassVar[User]
    seen: ClassVar[Counter[str]] = Counter()

    @initialize()
    def create_channel(self) -> None:
        self.channel = make_channel()
        newest = bucket_at(now_ms())
        self.buckets = list(range(newest - BUCKETS, newest + 1))
        self.slots = {bucket: self._ids_of(bucket) for bucket in self.buckets[:-1]}
        self.purges: list[Purge] = []
        for ids in self.slots.values():
            write(self.channel, ids, author=AUTHOR)
        # Half of the buckets have known bounds from the start; two of these are empty.
        self.purge_buckets(0, 2)
        for bucket in self.buckets[: BUCKETS // 2]:
            try_refresh_bucket(self.channel.pk, bucket, job="verify:0")

    @staticmethod
    def _ids_of(bucket: int) -> list[int]:
        first, last = bucket_ids(bucket)
        return [first + (last - first) // (A_BUCKET + 1) * number + 7 for number in range(1, A_BUCKET + 1)]

    # --- actions of users and jobs

    @rule()
    def post_message_now(self) -> None:
        post_message(self.channel.pk, author_id=AUTHOR, content="now")

    @rule(which=WHICH)
    def post_message_late(self, which: int) -> None:
        slots = [one for ids in self.slots.values() for one in ids]
        post_message(
            self.channel.pk, author_id=AUTHOR, content="late", message_id=slots[which % len(slots)] + 1 + which
        )

    @precondition(lambda self: self._living())
    @rule(which=WHICH)
    def withdraw_message_now(self, which: int) -> None:
        living = self._living()
        withdraw_message(self.channel.pk, living[which % len(living)], actor=AUTHOR)

    @precondition(lambda self: self._living())
    @rule(which=WHICH, buckets=st.integers(1, 4))
    def purge_buckets(self, which: int, buckets: int) -> None:
        there = self.buckets[which % len(self.buckets) :][:buckets]
        ids = [one for bucket in there for one in self._living(bucket)]
        if ids:
            self.purges.append(purge_now(self.moderator, choose(self.channel.pk, message_ids=ids)))

    @precondition(lambda self: self.purges)
    @rule(which=WHICH)
    def undo_purge_again(self, which: int) -> None:
        purge = self.purges.pop(which % len(self.purges))
        if can_be_undone(purge):
            request_undo(purge.pk, moderator=self.moderator, part=UndoPart(), reason="Appeal accepted")
            run_to_end(purge)

    @rule(which=WHICH)
    def import_bucket(self, which: int) -> None:
        ids = self.slots[self.buckets[which % BUCKETS]]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "export.json"
            raws = [make_raw(one, author=AUTHOR) for one in ids]
            path.write_text(json.dumps(make_export(self.channel.pk, raws)))
            run_import(path, deleted_ids=DeletedIds, on_restored=restore_on_import_as(self.moderator), restore=True)

    # --- reads that update the ledger

    @rule()
    def reconcile_ledger(self) -> None:
        # Deletes count as in flight for half a minute: pretend that it has passed.
        BucketDeletes.objects.filter(channel_id=self.channel.pk).update(last_at=postgres_now())
        run = JobRun.objects.create(job="bookkeeping", subject=str(self.channel.pk), due_at=postgres_now())
        ended = work_on_run(run.pk)
        assert ended is not None
        assert ended.state == RunState.DONE, ended.error

    @rule(which=WHICH)
    def verify_some_buckets(self, which: int) -> None:
        for bucket in self.buckets[which % len(self.buckets) :][:4]:
            try_refresh_bucket(self.channel.pk, bucket, job="verify:1")

    @rule(which=WHICH, what=st.sampled_from(["post", "post late", "withdraw", "purge", "undo"]))
    def write_during_read(self, which: int, what: str) -> None:
        """Run an action between the read of a bucket and the ledger update."""
        actions: dict[str, Callable[[], None]] = {
            "post": self.post_message_now,
            "post late": lambda: self.post_message_late(which),
            "withdraw": lambda: self.withdraw_message_now(which),
            "purge": lambda: self.purge_buckets(which, 2),
            "undo": lambda: self.undo_purge_again(which),
        }
        if what == "withdraw" and not self._living():
            return
        if what == "undo" and not self.purges:
            return
        left = [actions[what]]

        def once() -> None:
            while left:
                left.pop()()

        try_refresh_bucket(self.channel.pk, self.buckets[which % len(self.buckets)], job="verify:2", between_pages=once)

    # --- invariants

    @invariant()
    def whatever_lives_is_on_a_page(self) -> None:
        living = self._living()
        assert self._on_pages() == living
        lives = [live for _, live in ledger.read_ledger(self.channel.pk)]
        self.seen["checks"] += 1
        self.seen["empty and known"] += sum(live.is_empty for live in lives)
        self.seen["bounds known"] += sum(live.is_known and not live.is_empty for live in lives)

    def _living(self, *buckets: int) -> list[int]:
        """Return the live ids, ascending, read from every bucket whatever the ledger records."""
        rows = (
            row
            for bucket in buckets or self.buckets
            for page in messages.read_ids(self.channel.pk, bucket)
            for row in page
        )
        return sorted(message_id for message_id, author_id in rows if author_id is not None)

    def _on_pages(self) -> list[int]:
        found: list[int] = []
        before: int | None = None
        while True:
            page = read_page(self.channel.pk, before=before, limit=50, deadline_seconds=30)
            found += [message.message_id for message in page.messages]
            if page.older is None:
                return sorted(found)
            before = page.older


@pytest.mark.slow
def test_every_live_message_is_on_a_page(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightly_ledger, "BUSY_PAUSE_SECONDS", 0.05)

    class Machine(Interleavings):
        moderator = mona
        seen: ClassVar[Counter[str]] = Counter()

    wanted = settings(
        max_examples=4,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        # Each step takes a second on real servers, so no shrinking.
        phases=[Phase.generate],
    )
    run_state_machine_as_test(Machine, settings=wanted)
    assert Machine.seen["checks"] > 50
    assert Machine.seen["empty and known"] > 20
    assert Machine.seen["bounds known"] > 20
