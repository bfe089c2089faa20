"""An expired purge offers no undo, and its pages show the reason."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatstore.models import Channel
from moderation.models import Purge
from moderation.operations.undo.expiry import close_purge
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.moderation.operations.test_expiring import shift
from tests.moderation.rooms import everything, make_channel, old_ids, purge_now, run_to_end, write

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    channel = make_channel()
    write(channel, old_ids(20))
    return channel


def page(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def close(purge: Purge) -> None:
    shift(purge, 31)
    assert close_purge(purge.pk)


def test_the_purge_says_until_when_it_was_possible(mona: User, sign_in: SignIn, channel: Channel) -> None:
    purge = purge_now(mona, everything(channel))
    assert "Restore 20 messages" in page(sign_in(mona), f"/purges/{purge.pk}/")
    close(purge)
    shown = page(sign_in(mona), f"/purges/{purge.pk}/")
    assert "Deleted 20 messages" in shown
    assert "can no longer be restored" in shown
    assert "Restore 20 messages" not in shown
    assert "undo expired" in page(sign_in(mona), f"/purges/?channel={channel.pk}")


def test_one_that_was_partly_taken_back_says_how_much(mona: User, sign_in: SignIn, channel: Channel) -> None:
    purge = purge_now(mona, everything(channel))
    ask_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=tuple(old_ids(20)[:5])))
    run_to_end(purge)
    close(purge)
    shown = page(sign_in(mona), f"/purges/{purge.pk}/")
    assert "5 messages were restored before, 15 stay deleted." in shown


def test_a_message_says_that_it_stays_removed(mona: User, sign_in: SignIn, channel: Channel) -> None:
    purge = purge_now(mona, everything(channel))
    address = f"/channels/{channel.pk}/{old_ids(20)[3]}/"
    assert "Restore this message" in page(sign_in(mona), address)
    close(purge)
    shown = page(sign_in(mona), address)
    assert "The undo period has expired." in shown
    assert "Restore this message" not in shown
