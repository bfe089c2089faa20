"""What a moderator chose to remove, before anybody looked what it matches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, time_of

TICKED_AT_MOST = 1_000
"""Messages ticked one by one; more are chosen by author and dates."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Messages of one channel: ticked ones, or all of some authors and of a span of ids.

    after_id is inclusive, before_id exclusive. "The whole channel" is `everything`: a
    choice of its own, never what is left when every filter is empty.
    """

    channel_id: int
    message_ids: tuple[int, ...] = ()
    author_ids: tuple[int, ...] = ()
    after_id: int | None = None
    before_id: int | None = None
    everything: bool = False

    def __post_init__(self) -> None:
        narrowed = bool(self.author_ids) or self.after_id is not None or self.before_id is not None
        if not (self.message_ids or narrowed or self.everything):
            raise BadInput("Nothing is selected: name messages, an author, dates, or say that the whole channel goes.")
        if self.everything and (self.message_ids or narrowed):
            raise BadInput("The whole channel was chosen together with other filters: choose one of them.")
        if self.message_ids and narrowed:
            raise BadInput("Ticked messages cannot be combined with an author or dates.")
        if len(self.message_ids) > TICKED_AT_MOST:
            raise BadInput(f"At most {TICKED_AT_MOST:,} messages can be ticked; choose more by author and dates.")
        if self.after_id is not None and self.before_id is not None and self.after_id >= self.before_id:
            raise BadInput("The end of the time span does not lie after its beginning.")

    @property
    def first_id(self) -> int:
        """The lowest id that can match."""
        if self.message_ids:
            return min(self.message_ids)
        return MIN_ID if self.after_id is None else self.after_id

    @property
    def last_id(self) -> int:
        """The highest id that can match."""
        if self.message_ids:
            return max(self.message_ids)
        return MAX_ID if self.before_id is None else self.before_id - 1

    def match(self, rows: Iterable[tuple[int, int | None]]) -> list[tuple[int, int]]:
        """Those of the `(message_id, author_id)` rows that match, in their order.

        A row without an author is only the rest of a late edit, and no message: it never matches.
        """
        first, last = self.first_id, self.last_id
        if self.message_ids:
            ticked = frozenset(self.message_ids)
            return [(m, author) for m, author in rows if m in ticked and author is not None]
        if self.author_ids:
            authors = frozenset(self.author_ids)
            return [(m, author) for m, author in rows if author in authors and first <= m <= last]
        return [(m, author) for m, author in rows if author is not None and first <= m <= last]

    def as_json(self) -> dict[str, Any]:
        """A JSON object; ids are texts, since JavaScript's numbers cannot hold them."""
        return {
            "channel": str(self.channel_id),
            "messages": [str(i) for i in self.message_ids],
            "authors": [str(i) for i in self.author_ids],
            "after": None if self.after_id is None else str(self.after_id),
            "before": None if self.before_id is None else str(self.before_id),
            "everything": self.everything,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Selection:
        """From what `as_json` gave."""
        return cls(
            channel_id=int(value["channel"]),
            message_ids=tuple(map(int, value["messages"])),
            author_ids=tuple(map(int, value["authors"])),
            after_id=None if value["after"] is None else int(value["after"]),
            before_id=None if value["before"] is None else int(value["before"]),
            everything=value["everything"],
        )


def say_selection(selection: Selection, *, channel: str, authors: dict[int, str]) -> str:
    """The selection as a sentence's object: "everything by Victor in #general since 1 May 2024".

    channel: the channel's name as shown. authors: names by id; an unknown one is shown by its id.
    """
    if selection.message_ids:
        count = len(selection.message_ids)
        return f"{count:,} ticked {'message' if count == 1 else 'messages'} in {channel}"
    if selection.everything:
        return f"the whole channel {channel}"
    words = ["everything"]
    if selection.author_ids:
        words.append("by " + " and ".join(authors.get(i, f"user {i}") for i in selection.author_ids))
    words.append(f"in {channel}")
    if selection.after_id is not None:
        words.append(f"since {_say_moment(selection.after_id)}")
    if selection.before_id is not None:
        words.append(f"before {_say_moment(selection.before_id)}")
    return " ".join(words)


def _say_moment(snowflake: int) -> str:
    moment = time_of(snowflake)
    day = f"{moment.day} {moment:%B %Y}"
    return day if (moment.hour, moment.minute, moment.second) == (0, 0, 0) else f"{day}, {moment:%H:%M} UTC"
