"""A purge that was stopped before it deleted anything counts no deleted messages on its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models.users import User
from moderation.domain.states import StepState
from moderation.operations.purging.controls import cancel_purge, pause_purge
from moderation.operations.purging.worker import run_purge
from tests.moderation.channels import claim, confirm, everything, make_channel, old_ids, preview, write
from tests.pages.reading import read_page

SignIn = Callable[[User], Client]


@pytest.mark.parametrize("number", [1, 5])
def test_a_paused_purge_that_deleted_nothing_is_described_in_words(number: int, mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(number))
    purge = confirm(mona, preview(mona, everything(channel)))
    pause_purge(purge.pk, moderator=mona)
    page = " ".join(read_page(sign_in(mona), f"/purges/{purge.pk}/").split())
    assert f"Paused before deleting {number} message{'s' if number > 1 else ''}" in page
    assert "Nothing has been deleted yet, and nothing is deleted until you resume." in page
    assert "0 messages deleted" not in page


def test_a_paused_purge_whose_deletes_have_begun_is_not_said_to_have_deleted_nothing(
    mona: User, sign_in: SignIn
) -> None:
    channel = make_channel()
    write(channel, old_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    claim(purge)
    purge.steps.update(state=StepState.STAMPED)
    pause_purge(purge.pk, moderator=mona)
    client, path = sign_in(mona), f"/purges/{purge.pk}/"
    page = " ".join(read_page(client, path).split())
    assert "Deletions that have begun are still completed." in page
    assert "Nothing has been deleted" not in page
    assert "Paused before" not in page
    assert 'hx-trigger="every 1s' in page
    purge.steps.update(state=StepState.PENDING)
    assert "Paused before deleting 5 messages" in read_page(client, path)


def test_a_cancelled_purge_that_deleted_nothing_is_described_in_words(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    cancel_purge(purge.pk, moderator=mona)
    run_purge(purge.pk)
    page = " ".join(read_page(sign_in(mona), f"/purges/{purge.pk}/").split())
    assert "Cancelled before deleting 5 messages" in page
    assert "0 messages deleted" not in page
