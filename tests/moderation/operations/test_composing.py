"""Author input of a moderator is resolved to the intended authors."""

import secrets

import pytest

from chatstore.domain.errors import BadInput
from chatstore.models import Channel, ChatUser
from moderation.operations.selection.parsing import find_author, find_channel
from tests.moderation.channels import make_channel


def make_chat_user(name: str, display_name: str = "") -> ChatUser:
    return ChatUser.objects.create(pk=secrets.randbits(60), name=name, display_name=display_name)


def test_a_user_name_a_display_name_and_an_id_find_the_same_user() -> None:
    word = secrets.token_hex(6)
    user = make_chat_user(f"victor-{word}", f"Victor {word}")
    for typed in (f"victor-{word}", f"VICTOR {word}", f"@victor-{word}", str(user.pk)):
        assert find_author(typed) == user.pk


def test_an_ambiguous_name_is_refused_with_the_matching_ids() -> None:
    name = f"sam-{secrets.token_hex(6)}"
    users = [make_chat_user(name), make_chat_user(name)]
    with pytest.raises(BadInput, match="Several users") as refused:
        find_author(name)
    assert all(str(user.pk) in str(refused.value) for user in users)


def test_an_unknown_id_is_still_an_author() -> None:
    unknown = secrets.randbits(60)
    assert find_author(str(unknown)) == unknown


def test_an_id_comes_before_a_name_of_the_same_digits() -> None:
    user = make_chat_user(f"one-{secrets.token_hex(6)}")
    make_chat_user(str(user.pk))
    assert find_author(str(user.pk)) == user.pk


def test_an_unknown_name_is_reported() -> None:
    with pytest.raises(BadInput, match="no user called"):
        find_author(f"unknown-{secrets.token_hex(6)}")


def test_part_of_a_channel_name_is_refused_with_the_full_name_and_id() -> None:
    word = secrets.token_hex(6)
    channel = make_channel()
    Channel.objects.filter(pk=channel.pk).update(name=f"╰╸{word}-help")
    with pytest.raises(BadInput) as refused:
        find_channel(f"#{word}", Channel.objects.all())
    assert f"Did you mean “╰╸{word}-help” ({channel.pk})?" in str(refused.value)
