"""A message link is recognized wherever it is pasted, and nothing else is."""

from collections.abc import Callable

import pytest

from moderation.domain.links import find_channel_link, find_message_link, find_purge_link, find_user_link


@pytest.mark.parametrize(
    "text",
    [
        "https://chat.example/channels/5/77",
        "https://chat.example/channels/5/77/",
        " https://discord.example/channels/3/5/77 ",
        "https://discord.example/channels/@me/5/77",
        "/channels/5/77/?from=here#m77",
        "look: https://chat.example/channels/3/5/77",
    ],
)
def test_links_copied_from_chats_are_recognized(text: str) -> None:
    assert find_message_link(text) == ("5", "77")


def test_ids_of_before_2015_are_negative() -> None:
    assert find_message_link("/channels/-8/-5/-77") == ("-5", "-77")


@pytest.mark.parametrize(
    "text",
    [
        "77",
        "https://chat.example/channels/5/",
        "https://chat.example/channels/5/health/-7/",
        "https://chat.example/channels/5/77/undo/",
        "https://chat.example/channels/1/2/5/77",
        "https://chat.example/channels/x/5/77",
        "https://chat.example/channels/5/٧٧",
        "https://chat.example/channels/5/77 and more",
        "https://chat.example/channels/5/" + "7" * 21,
    ],
)
def test_anything_else_is_not_a_link(text: str) -> None:
    assert find_message_link(text) is None


@pytest.mark.parametrize("text", ["https://chat.example/purges/77/", " /purges/77?page=2#top ", "/purges/77"])
def test_a_link_of_a_purge_is_recognized(text: str) -> None:
    assert find_purge_link(text) == "77"


@pytest.mark.parametrize("text", ["77", "/purges/", "/purges/x/", "/purges/77/undo/", "/purges/77 and more"])
def test_other_pages_are_no_purges(text: str) -> None:
    assert find_purge_link(text) is None


@pytest.mark.parametrize(("find", "path"), [(find_channel_link, "channels"), (find_user_link, "users")])
def test_links_of_channels_and_users_end_with_one_id(find: Callable[[str], str | None], path: str) -> None:
    assert find(f" https://chat.example/{path}/77/ ") == "77"
    assert find(f"https://chat.example/{path}/-77?at=2026-11-01#end") == "-77"
    for other in (f"/{path}/5/77", f"/{path}/", f"/{path}/77/health/", "77", "#general", f"/{path}/77 hello"):
        assert find(other) is None, other
