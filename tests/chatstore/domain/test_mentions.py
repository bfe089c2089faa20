"""Mentions are found in every text of a message that pages show as markup, a limited number of them."""

from __future__ import annotations

import json

import pytest

from chatstore.domain.mentions import (
    MAX_MENTIONED,
    find_mentioned_channels,
    find_mentioned_roles,
    find_mentioned_users,
)
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import MAX_ID

pytestmark = pytest.mark.unit


def message(content: str = "", *embeds: object) -> Message:
    return Message(5, 6, 7, content, embeds=tuple(json.dumps(embed) for embed in embeds))


def test_each_kind_of_mention_is_found_in_a_text() -> None:
    shown = [message("see <#12>, <#3> and # <#x>"), message("<@4> <@!5> <@&6> <#12> @7")]
    assert find_mentioned_channels(shown) == [12, 3]
    assert find_mentioned_users(shown) == [4, 5]
    assert find_mentioned_roles(shown) == [6]


def test_mentions_are_found_in_descriptions_and_fields_of_embeds() -> None:
    embed = {"title": "<@1>", "description": "by <@2>", "fields": [{"name": "<@3>", "value": "in <#4>"}, {}, "<@5>"]}
    shown = [message("", embed, {"description": "<@&6>", "footer": {"text": "<@7>"}})]
    assert find_mentioned_users(shown) == [2]
    assert find_mentioned_channels(shown) == [4]
    assert find_mentioned_roles(shown) == [6]


def test_a_mention_is_found_in_an_embed_that_other_programs_have_escaped() -> None:
    shown = [Message(5, 6, 7, embeds=(r'{"description": "\u003c@2\u003e"}',))]
    assert find_mentioned_users(shown) == [2]


@pytest.mark.parametrize(
    "embed",
    [
        "<@1>",
        '["<@1>"]',
        '{"description": ["<@1>"]}',
        '{"fields": "<@1>"}',
        '{"fields": [["<@1>"]]}',
        '{"<": ' + "[" * 10**5,
    ],
)
def test_an_embed_of_another_shape_has_none(embed: str) -> None:
    assert find_mentioned_users([Message(5, 6, 7, "<@2>", embeds=(embed, '{"a": "<"}'))]) == [2]


def test_the_first_ones_that_are_ids_and_not_known_are_found() -> None:
    many = [message(" ".join(f"<@{number}>" for number in range(1_000, 1_000 + 2 * MAX_MENTIONED)))]
    first = message(f"<@{MAX_ID + 1}> <@{'9' * 20}> <@{MAX_ID}> <@7> <@{MAX_ID}>")
    expected = [MAX_ID, *range(1_000, 1_000 + MAX_MENTIONED - 1)]
    assert find_mentioned_users([first, *many], known={7}) == expected


def test_a_message_with_many_leaves_the_first_ones_of_the_others_to_be_found() -> None:
    many = message(" ".join(f"<@{number}>" for number in range(1_000, 1_000 + 2 * MAX_MENTIONED)))
    found = find_mentioned_users([many, message("<@1> <@1> <@1000>"), many, message("<@2> <@3>")])
    assert found == [1_000, 1, 2, 1_001, 3, *range(1_002, 1_000 + MAX_MENTIONED - 3)]
