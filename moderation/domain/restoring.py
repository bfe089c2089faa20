"""Planning of an undo: which deleted messages are restored, and which copy of each is used."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from chatstore.domain.messages import AUTHOR_ID
from moderation.domain.chunks import ROW_COLUMNS, Row, writetime_of


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Requested ids of an undo by outcome; together they are all of them.

    wanted: to be restored, if a copy exists. withdrawn: deleted by their own authors. still_purged: deleted by
    another purge. already_live: nothing to do.
    """

    wanted: frozenset[int]
    withdrawn: frozenset[int]
    still_purged: frozenset[int]
    already_live: frozenset[int]


def plan_restore(
    requested: Iterable[int], *, withdrawn: set[int], deleted_elsewhere: set[int], live: set[int]
) -> RestorePlan:
    """Assign each id to one outcome: withdrawn takes precedence over still purged, that over already live."""
    remaining = frozenset(requested)
    gone = remaining & withdrawn
    remaining -= gone
    still_purged = remaining & deleted_elsewhere
    remaining -= still_purged
    already_live = remaining & live
    return RestorePlan(remaining - already_live, gone, still_purged, already_live)


def newest_complete_rows(attempts: Iterable[Iterable[list[Row]]], *, wanted: Collection[int]) -> Iterator[list[Row]]:
    """Yield the rows to write, in chunks. attempts: newest first, each in chunks; read until all ids are found.

    Each id is yielded once, from the newest attempt that contains it with its author. Columns of newer copies without
    an author take precedence. Ids without any complete copy are not yielded.
    """
    done: set[int] = set()
    edits: dict[int, Row] = {}
    left = len(wanted)
    for chunks in attempts:
        for rows in chunks:
            if not left:
                return
            whole: list[Row] = []
            for copy in rows:
                message_id = copy[0]
                if message_id in done or message_id not in wanted:
                    continue
                row = merge_rows(edits[message_id], copy) if message_id in edits else copy
                if row[AUTHOR_ID] is None:
                    edits[message_id] = row
                else:
                    done.add(message_id)
                    left -= 1
                    whole.append(row)
            if whole:
                yield whole
        if not left:
            # Before the next attempt is taken, which reads it.
            return


def merge_rows(newer: Row, older: Row) -> Row:
    """Merge two copies of a row: columns of the newer copy take precedence where set.

    The result has the later WRITETIME of the copies that have one.
    """
    width = len(ROW_COLUMNS)
    columns = tuple(old if new is None else new for new, old in zip(newer[:width], older[:width], strict=True))
    writetimes = [time_us for time_us in map(writetime_of, (newer, older)) if time_us is not None]
    return (*columns, max(writetimes)) if writetimes else columns
