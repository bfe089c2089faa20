"""The copies that a purge has, and how many of their messages are live again."""

from __future__ import annotations

import pytest

from moderation.operations.steps.totals import CopyCounts, PurgeTotals, count_copies

pytestmark = pytest.mark.unit


def count(*, deleted: int, gone: int = 0, still_deleted: int, not_restored: int = 0) -> CopyCounts:
    totals = PurgeTotals(manifest=deleted + gone, deleted=deleted, already_gone=gone, held=0, failed=0, left=0, later=0)
    return count_copies(totals, still_deleted=still_deleted, not_restored=not_restored)


@pytest.mark.parametrize(("still_deleted", "restored"), [(605, 0), (402, 203), (0, 605)])
def test_what_is_not_still_deleted_was_restored(still_deleted: int, restored: int) -> None:
    copies = count(deleted=605, still_deleted=still_deleted)
    assert (copies.copied, copies.restored, copies.only_copied) == (605, restored, 605 - restored)


def test_messages_that_were_already_gone_have_no_copy() -> None:
    copies = count(deleted=600, gone=5, still_deleted=605)
    assert (copies.copied, copies.restored, copies.only_copied) == (600, 0, 600)
    copies = count(deleted=600, gone=5, still_deleted=0)
    assert (copies.copied, copies.restored, copies.only_copied) == (600, 600, 0)


def test_it_is_unknown_which_ones_were_restored_if_some_were_already_gone() -> None:
    copies = count(deleted=600, gone=5, still_deleted=402)
    assert (copies.copied, copies.restored, copies.only_copied) == (600, None, None)


def test_withdrawn_messages_are_neither_deleted_by_the_purge_nor_restored() -> None:
    copies = count(deleted=600, still_deleted=400, not_restored=50)
    assert (copies.copied, copies.restored, copies.only_copied) == (600, 150, 450)
    copies = count(deleted=600, gone=5, still_deleted=0, not_restored=50)
    assert (copies.copied, copies.restored, copies.only_copied) == (600, None, None)
