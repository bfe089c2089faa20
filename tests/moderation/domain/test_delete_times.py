"""Moderators read when messages are deleted; how, by buckets, is for operators."""

import pytest

from moderation.domain.planner import DeleteStrategy
from moderation.views.purge_preview import describe_delete_times

ONE_BUCKET = (1, 900)


@pytest.mark.parametrize(
    ("strategies", "sentences"),
    [
        ({DeleteStrategy.RANGES: ONE_BUCKET, DeleteStrategy.ROWS: (2, 33)}, ["All are deleted right away."]),
        (
            {DeleteStrategy.DROP: ONE_BUCKET, DeleteStrategy.LATER: (1, 12)},
            [
                "12 messages from the last hour are deleted once that hour is over.",
                "The others are deleted right away.",
            ],
        ),
        (
            {DeleteStrategy.LATER: (1, 1)},
            ["1 message from the last hour is deleted once that hour is over."],
        ),
        ({}, []),
    ],
)
def test_the_times_are_named_without_the_methods(
    strategies: dict[DeleteStrategy, tuple[int, int]], sentences: list[str]
) -> None:
    assert describe_delete_times(strategies) == sentences
