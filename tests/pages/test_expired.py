"""An expired purge offers no undo, and its pages show the reason."""

from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.models import Purge
from moderation.operations.undo.expiry import close_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import everything, make_channel, old_ids, purge_now, run_to_end, write
from tests.moderation.operations.test_expiry import shift
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    channel = make_channel()
    write(channel, old_ids(20))
    return channel


def close(purge: Purge) -> None:
    shift(purge, 31)
    assert close_purge(purge.pk)


def test_an_expired_purge_shows_its_undo_deadline(mona: User, sign_in: SignIn, channel: Channel) -> None:
    purge = purge_now(mona, everything(channel))
    assert "Restore 20 messages" in read_html(sign_in(mona), f"/purges/{purge.pk}/")
    close(purge)
    shown = read_html(sign_in(mona), f"/purges/{purge.pk}/")
    assert "Deleted 20 messages" in shown
    assert "can no longer be restored" in shown
    assert "Restore 20 messages" not in shown
    assert "undo expired" in read_html(sign_in(mona), f"/purges/?channel={channel.pk}")


def test_a_partly_undone_purge_shows_how_much(mona: User, sign_in: SignIn, channel: Channel) -> None:
    purge = purge_now(mona, everything(channel))
    request_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=tuple(old_ids(20)[:5])), reason="Appeal accepted")
    run_to_end(purge)
    close(purge)
    shown = read_html(sign_in(mona), f"/purges/{purge.pk}/")
    assert "5 messages were restored before, 15 stay deleted." in shown


def test_a_message_of_an_expired_purge_is_shown_as_permanently_deleted(
    mona: User, sign_in: SignIn, channel: Channel
) -> None:
    purge = purge_now(mona, everything(channel))
    url = f"/channels/{channel.pk}/{old_ids(20)[3]}/"
    assert "Restore this message" in read_html(sign_in(mona), url)
    close(purge)
    shown = read_html(sign_in(mona), url)
    assert "The undo period has expired." in shown
    assert "Restore this message" not in shown
