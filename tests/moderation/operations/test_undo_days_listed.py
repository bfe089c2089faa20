"""The list of purges shows the undo deadline of each one as long as an undo is possible."""

import datetime as dt

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.models import Purge, Step
from moderation.operations.purging.listing import list_purges
from moderation.operations.selection.summary import ListedPurge
from moderation.operations.undo.requests import UndoPart, request_undo, undo_until
from tests.moderation.channels import everything, make_channel, old_ids, preview, purge_now, run_to_end, write
from tests.moderation.stored_sums import store_sums


def filled_channel() -> Channel:
    channel = make_channel()
    write(channel, old_ids(20))
    return channel


def listed(mona: User, purge: Purge) -> ListedPurge:
    (found,) = (one for one in list_purges(mona).purges if one.purge.pk == purge.pk)
    return found


def test_the_list_and_the_purge_page_show_the_same_deadline(mona: User) -> None:
    purge = purge_now(mona, everything(filled_channel()))
    until = listed(mona, purge).undo_until
    assert until is not None
    assert until == undo_until(purge)


def test_no_undo_is_offered_after_the_deadline_even_before_the_nightly_close(mona: User) -> None:
    purge = purge_now(mona, everything(filled_channel()))
    Step.objects.filter(purge=purge).update(quarantined_at=postgres_now() - dt.timedelta(days=30, minutes=1))
    store_sums()
    assert listed(mona, purge).undo_until is None


def test_no_undo_is_offered_before_a_delete_or_after_a_full_restore(mona: User) -> None:
    channel = filled_channel()
    assert listed(mona, preview(mona, everything(channel))).undo_until is None
    purge = purge_now(mona, everything(channel))
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert listed(mona, run_to_end(purge)).undo_until is None
