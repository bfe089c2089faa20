"""A page of purges reads the holds of all of them together, whatever the number of purges."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState
from moderation.models import Hold, ManifestBucket, ManifestSummary, Purge
from moderation.operations.access.audit import save_with_next_id
from moderation.operations.holds import times_held
from tests.chatstore.channels import fresh_id
from tests.moderation.many_steps import make_large_purge

DAYS = dt.timedelta(days=5)


@pytest.fixture(autouse=True)
def _lifted_holds() -> Iterator[None]:
    """Remove the holds of a test."""
    known = set(Hold.objects.values_list("pk", flat=True))
    yield
    Hold.objects.exclude(pk__in=known).delete()


def purge_of(mona: User, author: int, *, listed: bool = True) -> Purge:
    """A purge of one author's messages. listed: whether its summary names every author."""
    purge = make_large_purge(mona, counted=0, pending=3, state=PurgeState.DONE, author=author)
    data = {"authors": [[author, 3]], "author_count": 1 if listed else 2}
    ManifestSummary.objects.update_or_create(purge=purge, defaults={"data": data})
    return purge


def place(mona: User, **what: int) -> Hold:
    hold = Hold(reason="case", placed_by=mona, **what)
    save_with_next_id(hold)
    Hold.objects.filter(pk=hold.pk).update(placed_at=postgres_now() - DAYS)
    return hold


def held(*purges: Purge) -> list[int]:
    """Days for which each purge was held."""
    since = postgres_now() - 2 * DAYS
    found = times_held(dict.fromkeys(purges, since))
    return [found[purge.pk].days for purge in purges]


@pytest.mark.parametrize("listed", [True, False], ids=["authors listed", "authors not listed"])
def test_each_purge_has_the_time_of_the_holds_that_cover_it(mona: User, listed: bool) -> None:
    author, in_channel, message = fresh_id(), fresh_id(), fresh_id()
    purges = [purge_of(mona, one, listed=listed) for one in (author, in_channel, message, fresh_id())]
    place(mona, author_id=author)
    second = ManifestBucket.objects.filter(purge=purges[1])[0]
    place(mona, channel_id=second.channel_id, author_id=in_channel)
    third = ManifestBucket.objects.filter(purge=purges[2])[0]
    assert third.first_id is not None
    place(mona, channel_id=third.channel_id, message_id=third.first_id)
    assert held(*purges) == [5, 5, 5, 0]


def test_a_hold_that_was_lifted_before_a_purge_adds_nothing_to_it(mona: User) -> None:
    author = fresh_id()
    early, late = purge_of(mona, author), purge_of(mona, author)
    placed, now = place(mona, author_id=author), postgres_now()
    Hold.objects.filter(pk=placed.pk).update(lifted_at=now - dt.timedelta(days=3))
    found = times_held({early: now - 2 * DAYS, late: now - dt.timedelta(days=1)})
    assert (found[early.pk].days, found[late.pk].days) == (2, 0)


def test_the_holds_of_six_purges_take_as_many_queries_as_those_of_one(mona: User) -> None:
    author = fresh_id()
    purges = [purge_of(mona, author) for _number in range(6)]
    place(mona, author_id=author)
    counts = []
    for shown in (purges[:1], purges):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert held(*shown) == [5] * len(shown)
        counts.append(len(queries))
    assert counts[0] == counts[1]
