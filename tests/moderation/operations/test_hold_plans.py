"""Holds on users in every channel are looked up by the authors of the steps' messages, not all loaded."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from django.db import connection

from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState
from moderation.models import Hold, ManifestBucket, ManifestSummary, Purge, Step
from moderation.operations.access.audit import save_with_next_id
from moderation.operations.holds import hold_coverage_of_steps, hold_over_purge, holds_covering, times_held
from tests.chatstore.channels import fresh_id
from tests.moderation.many_steps import make_large_purge
from tests.plans import analyze, explain, rows_read

HELD = 400
MANY = 20_000


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


@pytest.fixture
def _many_held(mona: User) -> Iterator[None]:
    """Far more holds than a page of purges has channels, most of them lifted, so that Postgres would rather scan."""
    first = fresh_id()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO moderation_hold (id, author_id, channel_id, message_id, reason, placed_by_id, lifted_at) "
            "SELECT %s + n, CASE WHEN n %% 3 = 0 THEN %s + n END, CASE WHEN n %% 5 > 0 OR n %% 3 > 0 THEN %s + n END, "
            "NULL, 'case', %s, CASE WHEN n %% 10 > 0 THEN now() - interval '90 days' END FROM generate_series(1, %s) n",
            [first, first, first, mona.pk, MANY],
        )
    analyze(Hold)
    yield
    Hold.objects.filter(pk__gt=first, pk__lte=first + MANY).delete()
    analyze(Hold)


@pytest.mark.usefixtures("_many_held")
@pytest.mark.parametrize("listed", [True, False], ids=["authors listed", "authors not listed"])
def test_the_holds_of_a_page_of_purges_are_found_by_index(mona: User, author: int, *, listed: bool) -> None:
    purges = []
    for _number in range(12):
        purge = make_large_purge(mona, counted=0, pending=40, state=PurgeState.DONE, author=author)
        data = {"authors": [[author, 40]], "author_count": 1 if listed else 2}
        ManifestSummary.objects.update_or_create(purge=purge, defaults={"data": data})
        purges.append(purge)
    analyze(ManifestBucket)
    covering = [place(mona, author_id=author), place(mona, channel_id=purges[0].steps.all()[0].channel_id)]
    since = postgres_now() - dt.timedelta(days=1)
    statements = explain(lambda: times_held(dict.fromkeys(purges, since)), use_indexes=False)
    assert [one.sql for one in statements if Hold._meta.db_table in one.scanned] == []
    assert rows_read(statements, Hold._meta.db_table) <= 3 * len(purges) * len(covering)
    assert all(time > dt.timedelta() for time in times_held(dict.fromkeys(purges, since)).values())


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
