"""Of several requests for the same undo one counts; the others change nothing."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections
from django.utils import timezone

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge, Undo, UndoStep
from moderation.operations.undo.requests import AlreadyRequested, UndoPart, request_undo
from tests.conftest import make_user
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    everything,
    ids_of,
    old_ids,
    purge_now,
    run_to_end,
    write,
)

PEOPLE = 4
WHOLE, OF_VICTOR, OF_WILMA = UndoPart(), UndoPart(author_ids=(VICTOR,)), UndoPart(author_ids=(WILMA,))


@pytest.fixture
def purge(mona: User, channel: Channel) -> Purge:
    """Purge 20 messages of Victor and 10 of Wilma."""
    ids = old_ids(30)
    write(channel, ids[:20])
    write(channel, ids[20:], author=WILMA)
    return purge_now(mona, everything(channel))


def request(purge: Purge, moderator: User, part: UndoPart = WHOLE) -> Undo:
    return request_undo(purge.pk, moderator=moderator, part=part, reason="Appeal accepted")


def test_of_requests_at_the_same_time_one_counts(purge: Purge, channel: Channel) -> None:
    people = [make_user(f"mo{number}", group="moderators") for number in range(PEOPLE)]
    barrier = Barrier(PEOPLE)

    def request_at_once(moderator: User) -> bool:
        try:
            barrier.wait(timeout=60)
            request(purge, moderator)
        except AlreadyRequested:
            return False
        else:
            return True
        finally:
            connections.close_all()

    with ThreadPoolExecutor(PEOPLE) as pool:
        assert sum(pool.map(request_at_once, people)) == 1
    undo = purge.undos.get()
    assert AuditEntry.objects.filter(purge=purge, action="undo_requested").count() == 1
    assert UndoStep.objects.filter(purge=purge).count() == undo.steps.count()
    run_to_end(purge)
    undo.refresh_from_db()
    assert (undo.requested, undo.restored) == (30, 30)
    ids = old_ids(30)
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_an_undo_of_the_whole_purge_includes_its_parts(purge: Purge, mona: User, lena: User) -> None:
    request(purge, mona)
    with pytest.raises(AlreadyRequested):
        request(purge, lena, OF_WILMA)
    assert purge.undos.count() == 1


def test_an_undo_of_one_part_does_not_include_another(purge: Purge, mona: User, lena: User) -> None:
    request(purge, mona, OF_VICTOR)
    for part in (OF_WILMA, WHOLE):
        with pytest.raises(BadInput, match="present state: restoring") as refused:
            request(purge, lena, part)
        assert not isinstance(refused.value, AlreadyRequested)
    assert purge.undos.count() == 1


def test_a_form_that_is_sent_again_after_the_undo_has_ended_is_the_same_request(purge: Purge, mona: User) -> None:
    request(purge, mona, OF_VICTOR)
    assert run_to_end(purge).state == PurgeState.PARTLY_UNDONE
    with pytest.raises(AlreadyRequested):
        request(purge, mona, OF_VICTOR)
    assert purge.undos.count() == 1
    request(purge, mona, OF_WILMA)
    assert run_to_end(purge).state == PurgeState.UNDONE
    with pytest.raises(AlreadyRequested):
        request(purge, mona)
    assert purge.undos.count() == 2


@pytest.mark.parametrize(
    "change",
    [{"requested_at": timezone.now() - dt.timedelta(minutes=1)}, {"restored": 19, "failed": 1}],
    ids=["a minute later", "after a failure"],
)
def test_a_part_can_be_requested_again(purge: Purge, mona: User, change: dict[str, object]) -> None:
    first = request(purge, mona, OF_VICTOR)
    run_to_end(purge)
    first.refresh_from_db()
    Undo.objects.filter(pk=first.pk).update(**change)
    try:
        assert request(purge, mona, OF_VICTOR).pk != first.pk
    finally:
        first.save(update_fields=("restored", "failed"))
    run_to_end(purge)
