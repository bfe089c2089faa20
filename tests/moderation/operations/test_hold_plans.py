"""Holds on users in every channel are looked up by the authors of the steps' messages, not all loaded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import Hold, ManifestBucket, Purge, Step
from moderation.operations.access.audit import save_with_next_id
from moderation.operations.holds import hold_coverage_of_steps, hold_over_purge, holds_covering
from tests.chatstore.channels import fresh_id
from tests.moderation.many_steps import make_large_purge
from tests.plans import analyze, explain, rows_read

HELD = 400


@pytest.fixture
def author() -> int:
    """A user whom no other test knows."""
    return fresh_id()


@pytest.fixture
def purge(mona: User, author: int) -> Purge:
    """A purge of the user's messages."""
    return make_large_purge(mona, counted=0, pending=3, state=PurgeState.QUEUED, author=author)


@pytest.fixture
def _held(mona: User) -> Iterator[None]:
    """Holds on other users."""
    first = fresh_id()
    holds = [Hold(author_id=first + number, reason="case", placed_by=mona) for number in range(HELD)]
    for hold in holds:
        save_with_next_id(hold)
    analyze(Hold)
    yield
    Hold.objects.filter(pk__in=[hold.pk for hold in holds]).delete()


def place(mona: User, **what: int) -> Hold:
    hold = Hold(reason="case", placed_by=mona, **what)
    save_with_next_id(hold)
    return hold


@pytest.mark.usefixtures("_held")
def test_holds_on_other_users_are_not_loaded(purge: Purge, author: int, mona: User) -> None:
    steps = list(purge.steps.all())
    before = rows_read(explain(lambda: hold_coverage_of_steps(steps)), Hold._meta.db_table)
    assert before < HELD
    hold = place(mona, author_id=author)
    coverage = hold_coverage_of_steps(steps)
    assert all(coverage[step.channel_id].covers(5, author) for step in steps)
    assert hold_over_purge(purge) == hold


@pytest.mark.usefixtures("_held")
def test_all_holds_are_loaded_if_the_manifest_does_not_name_every_author(purge: Purge) -> None:
    ManifestBucket.objects.filter(purge=purge).update(count=2)
    coverage = hold_coverage_of_steps(list(purge.steps.all()))
    assert all(len(one.authors) >= HELD for one in coverage.values())


def test_each_kind_of_hold_covers_the_purge(purge: Purge, author: int, mona: User) -> None:
    step = Step.objects.filter(purge=purge)[0]
    place(mona, channel_id=step.channel_id, author_id=fresh_id())
    place(mona, channel_id=step.channel_id, message_id=fresh_id())
    assert holds_covering(purge, since=purge.created_at) == []
    manifest = ManifestBucket.objects.filter(purge=purge, channel_id=step.channel_id)[0]
    assert manifest.first_id is not None
    covering = [
        place(mona, channel_id=step.channel_id),
        place(mona, channel_id=step.channel_id, author_id=author),
        place(mona, channel_id=step.channel_id, message_id=manifest.first_id),
        place(mona, author_id=author),
    ]
    found = holds_covering(purge, since=purge.created_at)
    assert {hold.pk for hold in found} == {hold.pk for hold in covering}
