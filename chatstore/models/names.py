"""Search for parts of names among millions of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import ClassVar, Self, TypeVar

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q, Value

from chatstore.models.functions import NameTrigrams, Trigrams

LONGEST_NAME = 200
"""Characters of the longest name of a guild, a channel or a chat user."""

RowT = TypeVar("RowT", bound=models.Model)


class NamedQuerySet(models.QuerySet[RowT]):
    """Rows with names. NAMES: the columns; an index of the table has the trigrams of each.

    Nothing has a name of more than `LONGEST_NAME` characters, and Postgres is not asked for its trigrams: for those of
    70,000 characters it needed 40 seconds.
    """

    NAMES: ClassVar[tuple[str, ...]] = ("name",)

    def named(self, text: str) -> Self:
        """Rows with exactly this name, in upper or lower case."""
        return self._matching(f"  {text} ", "iexact", text)

    def named_from(self, text: str) -> Self:
        """Rows with a name that begins with the text."""
        return self._matching(f"  {text}", "istartswith", text)

    def named_with(self, text: str) -> Self:
        """Rows with a name that contains the text, of at least three characters: shorter ones have no trigrams."""
        return self._matching(text, "icontains", text)

    def _matching(self, padded: str, lookup: str, text: str) -> Self:
        if len(text) > LONGEST_NAME:
            return self.none()
        is_one = reduce(or_, (Q(**{f"{name}__{lookup}": text}) for name in self.NAMES))
        # The index finds rows that have these trigrams, in any order.
        return self.alias(trigrams=NameTrigrams(*self.NAMES)).filter(is_one, trigrams__contains=Trigrams(Value(padded)))


def name_index(name: str, *columns: str) -> GinIndex:
    """Return the index that the searches need."""
    return GinIndex(NameTrigrams(*columns), name=name)


MAX_RANKED = 1_000
"""Rows of one kind of match that are ranked: more are read only for a beginning that many names share."""

MIN_PART_CHARACTERS = 3
"""Shorter texts are only found at the beginning of a name."""


def find_by_name(
    rows: NamedQuerySet[RowT],
    text: str,
    *,
    limit: int,
    preferred: Sequence[int] = (),
    rank: Callable[[Sequence[int]], Sequence[int]] | None = None,
) -> list[RowT]:
    """Return rows by name: those with exactly this name, then those that begin with it, then those that contain it.

    preferred: keys of rows that come first among each of these, in this order. rank: orders the keys of up to
    `MAX_RANKED` other rows, and returns those that come next. Of the rest only `limit` are read, whichever they are,
    since any other order would need all of them.
    """
    found: dict[int, RowT] = {}
    searches = [rows.named, rows.named_from, *([rows.named_with] if len(text) >= MIN_PART_CHARACTERS else [])]
    for search in searches:
        if len(found) >= limit:
            break
        matching = search(text).order_by()
        for row in _preferred(matching, preferred, limit=limit):
            found.setdefault(row.pk, row)
        if len(found) < limit and rank is not None:
            keys = list(matching.exclude(pk__in=found).values_list("pk", flat=True)[:MAX_RANKED])
            for row in _in_order(matching, rank(keys)[:limit]):
                found.setdefault(row.pk, row)
        if len(found) < limit:
            for row in sorted(matching[:limit], key=lambda row: (str(row), row.pk)):
                found.setdefault(row.pk, row)
    return list(found.values())[:limit]


def _preferred(matching: NamedQuerySet[RowT], keys: Sequence[int], *, limit: int) -> list[RowT]:
    """Return the rows with the first of the keys, in their order."""
    if not keys:
        return []
    known = set(matching.filter(pk__in=keys).values_list("pk", flat=True))
    return _in_order(matching, list(islice((key for key in keys if key in known), limit)))


def _in_order(matching: NamedQuerySet[RowT], keys: Sequence[int]) -> list[RowT]:
    rows = matching.in_bulk(keys) if keys else {}
    return [rows[key] for key in keys if key in rows]
