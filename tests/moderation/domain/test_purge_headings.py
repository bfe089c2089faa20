"""The heading of a purge's page says how many messages its state is about."""

from __future__ import annotations

import pytest

from moderation.domain.states import PurgeState
from moderation.presentation.purge_heading import HeadingCounts, format_heading

COUNTS = HeadingCounts(found=4_057, to_delete=2_853, is_exact=True, deleted=1_200, undoing=300, restored=280)
ONE = HeadingCounts(found=1, to_delete=1, is_exact=True, deleted=1, undoing=1, restored=1)


def head(state: PurgeState, counts: HeadingCounts = COUNTS, *, has_started: bool = True) -> str:
    return format_heading(state, counts, has_started=has_started, is_stopping=False)


@pytest.mark.parametrize(
    ("state", "heading"),
    [
        (PurgeState.READY, "Delete 2,853 messages?"),
        (PurgeState.RUNNING, "Deleting 4,057 messages"),
        (PurgeState.PAUSED, "Paused after 1,200 of 4,057 messages"),
        (PurgeState.CANCELLED, "Cancelled after 1,200 of 4,057 messages"),
        (PurgeState.DONE, "Deleted 4,057 messages"),
        (PurgeState.DONE_WITH_FAILURES, "Deleted 1,200 of 4,057 messages"),
        (PurgeState.UNDOING, "Restoring 300 of 4,057 messages"),
        (PurgeState.UNDONE, "Restored 280 messages"),
        (PurgeState.PARTLY_UNDONE, "Partly restored: 280 of 4,057 messages"),
        (PurgeState.UNDO_EXPIRED, "Deleted 1,200 of 4,057 messages"),
    ],
)
def test_each_state_counts_what_it_is_about(state: PurgeState, heading: str) -> None:
    assert head(state) == heading


@pytest.mark.parametrize("state", [PurgeState.QUEUED, PurgeState.WAITING])
def test_a_purge_is_about_to_delete_until_it_has_started(state: PurgeState) -> None:
    assert head(state, has_started=False) == "About to delete 4,057 messages"
    assert head(state) == "Deleting 4,057 messages"


@pytest.mark.parametrize("state", [PurgeState.PAUSED, PurgeState.CANCELLED])
def test_a_purge_that_ends_before_its_first_delete_says_so(state: PurgeState) -> None:
    counts = HeadingCounts(found=4_057, to_delete=4_057, is_exact=True, deleted=0, undoing=0, restored=0)
    assert head(state, counts).endswith("before deleting 4,057 messages")


def test_a_preview_with_unknown_deletes_says_that_its_number_is_a_bound() -> None:
    counts = HeadingCounts(found=4_057, to_delete=4_057, is_exact=False, deleted=0, undoing=0, restored=0)
    assert head(PurgeState.READY, counts) == "Delete up to 4,057 messages?"


def test_a_preview_of_which_nothing_is_left_has_nothing_to_delete() -> None:
    counts = HeadingCounts(found=4_057, to_delete=0, is_exact=True, deleted=0, undoing=0, restored=0)
    assert head(PurgeState.READY, counts) == "Nothing is left to delete"


@pytest.mark.parametrize("state", [PurgeState.READY, PurgeState.RUNNING, PurgeState.DONE, PurgeState.UNDOING])
def test_one_message_is_singular(state: PurgeState) -> None:
    assert head(state, ONE).rstrip("?").endswith(" message")
    assert " 1 " in head(state, ONE)
