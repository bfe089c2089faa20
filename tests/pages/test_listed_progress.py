"""Lists show how far a running purge or undo is, and which of several people of the same name started it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import Purge, Step, Undo
from moderation.operations.access.audit import save_with_next_id
from moderation.operations.purging.listing import list_purges
from moderation.operations.steps.totals import totals_of
from tests.conftest import make_user
from tests.moderation.channels import everything, make_channel, old_ids, purge_now, write
from tests.moderation.many_steps import make_large_purge
from tests.moderation.stored_sums import store_sums
from tests.pages.reading import read_page

SignIn = Callable[[User], Client]


def half_done(mona: User, *, state: PurgeState = PurgeState.RUNNING) -> Purge:
    """Return a purge of seven messages of which three were deleted, one was held, and one failed."""
    purge = make_large_purge(mona, counted=5, pending=2, state=state)
    Purge.objects.filter(pk=purge.pk).update(manifest=7)
    Step.objects.filter(purge=purge, ordinal__lt=3).update(deleted=1)
    Step.objects.filter(purge=purge, ordinal=3).update(held=1)
    Step.objects.filter(purge=purge, ordinal=4).update(failed=1)
    store_sums()
    purge.refresh_from_db()
    return purge


def line_of(purge: Purge, page: str) -> str:
    """Return the text of a purge's line in a list."""
    line = page.split(f'class="title" href="/purges/{purge.pk}/"', 1)[1].split("</li>", maxsplit=1)[0]
    return " ".join(re.sub(r"<[^>]*>", " ", line).split())


@pytest.mark.parametrize("state", [PurgeState.RUNNING, PurgeState.WAITING, PurgeState.PAUSED, PurgeState.QUEUED])
def test_lists_show_the_progress_of_the_purges_own_page(mona: User, sign_in: SignIn, state: PurgeState) -> None:
    purge, client = half_done(mona, state=state), sign_in(mona)
    assert purge.manifest - totals_of(purge).left == 5
    for path in ("/", f"/purges/?by={mona.username}"):
        assert "5 of 7 done (71 %)" in line_of(purge, read_page(client, path)), path


def test_a_purge_that_has_not_begun_and_one_that_has_ended_show_none(mona: User, sign_in: SignIn) -> None:
    queued = make_large_purge(mona, counted=0, pending=2, state=PurgeState.QUEUED)
    done = half_done(mona, state=PurgeState.CANCELLED)
    page = read_page(sign_in(mona), f"/purges/?by={mona.username}")
    assert "%)" not in line_of(queued, page)
    assert "%)" not in line_of(done, page)


@pytest.mark.parametrize(("requested", "text"), [(1, "1 of 3 done (33 %)"), (2, "2 of 3 done (67 %)")])
def test_an_undo_shows_how_many_of_the_requested_messages_are_decided(
    mona: User, sign_in: SignIn, requested: int, text: str
) -> None:
    purge = half_done(mona, state=PurgeState.UNDOING)
    save_with_next_id(Undo(purge=purge, moderator=mona, part={}, expected=3, requested=requested))
    assert text in line_of(purge, read_page(sign_in(mona), f"/purges/?by={mona.username}"))


def test_the_number_of_statements_is_that_of_one_purge(mona: User) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as statements:
            list_purges(mona, moderator=mona.username)
        return len(statements)

    half_done(mona)
    count()  # Reads the roles of the account.
    one = count()
    for _ in range(3):
        half_done(mona)
    assert count() == one


def test_moderators_of_the_same_name_are_listed_with_their_user_names(mona: User, sign_in: SignIn) -> None:
    other, single = make_user("mona", group="moderators"), make_user("lena", group="moderators")
    family = f"Berg {mona.pk}"
    User.objects.filter(pk__in=(mona.pk, other.pk)).update(first_name="Mona", last_name=family)
    User.objects.filter(pk=single.pk).update(first_name="Lena", last_name=family)
    purges = {}
    for account in (mona, other, single):
        channel = make_channel()
        write(channel, old_ids(2))
        purges[account] = purge_now(account, everything(channel))
    client = sign_in(single)
    for path in ("/", "/purges/?x=", "/purges/?view=deleted"):
        for account in (mona, other):
            page = read_page(client, path if path == "/" else f"{path}&by={account.username}")
            assert f"Mona {family} ({account.username})" in line_of(purges[account], page), path
        page = read_page(client, path if path == "/" else f"{path}&by={single.username}")
        assert f"Lena {family}" in line_of(purges[single], page), path
        assert f"Lena {family} (" not in line_of(purges[single], page), path
