"""Messages by bots have a tag beside the author's name, those by people have none."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, ChatUser
from chatstore.models.users import User
from tests.conftest import make_user
from tests.moderation.channels import confirm, everything, make_channel, now_ms, old_ids, preview, run_to_end, write
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    """Create a channel with a message of a bot and one of a person, who share a name."""
    channel = make_channel()
    for message_id, handle in zip(old_ids(2), ("tides", "tina"), strict=True):
        author = make_snowflake(now_ms()) | secrets.randbits(22)
        ChatUser.objects.create(pk=author, name=handle, display_name="Tide clock", is_bot=handle == "tides")
        write(channel, [message_id], author=author)
    return channel


def tags_of(page: str) -> list[list[str]]:
    """Return the tags in the heading of each message, in the order of the messages."""
    headings = re.findall(r'<header class="msg-head">.*?</header>', page, re.DOTALL)
    return [re.findall(r'Tide clock</bdi>(?:</a>)?\s*<span class="tag">(.*?)</span>', heading) for heading in headings]


@pytest.mark.parametrize("group", ["moderators", "operators"])
def test_a_bot_has_a_tag_in_the_timeline_and_in_lists_of_messages(
    group: str, channel: Channel, mona: User, sign_in: SignIn
) -> None:
    # Operators see names without links to pages of users.
    client, purge = sign_in(make_user("otto", group=group)), preview(mona, everything(channel))
    path = f"/purges/{purge.pk}/"
    for shown in (f"/channels/{channel.pk}/", path, f"{path}messages/"):
        assert tags_of(read_html(client, shown)) == [["bot"], []], shown
    run_to_end(confirm(mona, purge))
    assert tags_of(read_html(client, f"{path}messages/")) == [["bot"], []]
    assert tags_of(read_html(sign_in(mona), f"{path}undo/")) == [["bot"], []]
