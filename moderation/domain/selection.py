"""Selection of the messages to delete, before the scan matches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chatstore.domain.errors import BadInput
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID
from chatstore.domain.roles import Scope
from chatstore.domain.snowflakes import MAX_ID, MIN_ID
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from moderation.domain.filter_json import filter_as_json, filter_from_json
from moderation.domain.filters import (
    Filter,
    JoinedAt,
    Row,
    authors_of,
    columns_of,
    compile_filter,
    first_seen_hours,
    id_range_of,
    join_minutes,
    joins_unknown,
    named_authors,
)
from moderation.domain.first_seen import FirstSeenOf, first_seen_unknown

MAX_SELECTED_MESSAGES = 1_000
"""Maximum number of individually selected messages, and of excluded ones. Use filters for more."""

MAX_CHANNELS = 1_000


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected messages of one channel, the matches of a filter in some channels, or one whole channel.

    Channels: those of `channel_ids`, or all of the guild. If neither is set, every channel in which the authors of
    `where` have posted. Those of `except_channel_ids` are left out of the latter two. `everything` selects the whole
    channel; it is an explicit choice and never follows from empty filters. A filter without a condition on pinned
    messages keeps them unless `with_pinned` is set. except_ids: matches that were excluded in the preview. within:
    where the moderator may delete, if that is not everywhere that the others select.
    """

    channel_ids: tuple[int, ...] = ()
    guild_id: int | None = None
    message_ids: tuple[int, ...] = ()
    where: Filter | None = None
    with_pinned: bool = False
    except_ids: tuple[int, ...] = ()
    everything: bool = False
    except_channel_ids: tuple[int, ...] = ()
    within: Scope | None = None

    def __post_init__(self) -> None:
        choices = bool(self.message_ids) + (self.where is not None) + self.everything
        if choices == 0:
            raise BadInput(_("Nothing is selected. Select messages, an author or dates, or the whole channel."))
        if self.everything and choices > 1:
            raise BadInput(_("The whole channel cannot be combined with other filters. Use one or the other."))
        if choices > 1:
            raise BadInput(_("Selected messages cannot be combined with filters. Use one or the other."))
        self._check_channels()
        if max(len(self.message_ids), len(self.except_ids)) > MAX_SELECTED_MESSAGES:
            raise BadInput(
                ngettext_lazy(
                    "Select or exclude at most %(count)s message. Use filters for more.",
                    "Select or exclude at most %(count)s messages. Use filters for more.",
                    MAX_SELECTED_MESSAGES,
                )
            )
        if self.where is not None and self.first_id > self.last_id:
            raise BadInput(_("The end of the time range must be after its start."))

    def _check_channels(self) -> None:
        if self.channel_ids and self.guild_id is not None:
            raise BadInput(_("Select either channels or a whole server, not both."))
        if self.channel_ids and self.except_channel_ids:
            raise BadInput(_("Channels can only be kept if no others are named. Name the channels to search, or none."))
        if max(len(self.channel_ids), len(self.except_channel_ids)) > MAX_CHANNELS:
            raise BadInput(
                ngettext_lazy(
                    "Select at most %(count)s channel at a time, or the whole server.",
                    "Select at most %(count)s channels at a time, or the whole server.",
                    MAX_CHANNELS,
                )
            )
        if self.where is None and len(self.channel_ids) != 1:
            raise BadInput(_("Select exactly one channel."))
        everywhere = not self.channel_ids and self.guild_id is None
        if self.where is not None and everywhere and authors_of(self.where) is None:
            raise BadInput(_("Without a channel, only messages by specific authors can be deleted. Enter an author."))

    @property
    def only_channel_id(self) -> int | None:
        """The channel id if the selection names exactly one channel, else None."""
        return self.channel_ids[0] if len(self.channel_ids) == 1 else None

    @property
    def first_id(self) -> int:
        """The lowest id that can match."""
        if self.message_ids:
            return min(self.message_ids)
        return MIN_ID if self.where is None else id_range_of(self.where)[0]

    @property
    def last_id(self) -> int:
        """The highest id that can match."""
        if self.message_ids:
            return max(self.message_ids)
        return MAX_ID if self.where is None else id_range_of(self.where)[1]

    @property
    def author_ids(self) -> frozenset[int] | None:
        """The only possible authors of matching messages, or None if any author can match."""
        return None if self.where is None else authors_of(self.where)

    @property
    def named_authors(self) -> frozenset[int]:
        """The ids of the authors that a summary of the selection names."""
        return frozenset() if self.where is None else named_authors(self.where)

    @property
    def join_minutes(self) -> int:
        """The most minutes after joining that a condition is about; 0 without such a condition."""
        return 0 if self.where is None else join_minutes(self.where)

    @property
    def first_seen_hours(self) -> frozenset[int]:
        """The hours after an author's first message that conditions are about."""
        return frozenset() if self.where is None else first_seen_hours(self.where)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read for matching a row: id and author first."""
        wanted = set() if self.where is None else set(columns_of(self.where))
        if self.keeps_pinned:
            wanted.add("pinned")
        return ("message_id", "author_id", *sorted(wanted))

    @property
    def includes_pinned(self) -> bool:
        """True if matching pinned messages are deleted too because that was chosen."""
        return self._follows_choice_on_pinned and self.with_pinned

    @property
    def keeps_pinned(self) -> bool:
        """True if matching pinned messages are kept."""
        return self._follows_choice_on_pinned and not self.with_pinned

    @property
    def _follows_choice_on_pinned(self) -> bool:
        # A filter with its own condition on pinned messages decides itself.
        return self.where is not None and "pinned" not in columns_of(self.where)

    def matcher(
        self,
        *,
        bots: frozenset[int] = frozenset(),
        joined: JoinedAt = joins_unknown,
        first_seen: FirstSeenOf | None = first_seen_unknown,
    ) -> Callable[[Sequence[Row]], list[Row]]:
        """Return a function that returns the matching rows, in their order. Rows have the values of `columns`.

        A row without an author contains only a late edit, is not a message, and never matches. bots: ids of bot
        accounts. joined: when authors joined the guild of the rows. first_seen: when authors posted for the first time;
        None: return all rows that could match, whenever that was.
        """
        if self.message_ids:
            included = frozenset(self.message_ids).difference(self.except_ids)
            return lambda rows: [row for row in rows if row[MESSAGE_ID] in included and row[AUTHOR_ID] is not None]
        excluded = frozenset(self.except_ids)
        if self.where is None:
            return lambda rows: [row for row in rows if row[AUTHOR_ID] is not None and row[MESSAGE_ID] not in excluded]
        test = compile_filter(self.where, self.columns, bots=bots, joined=joined, first_seen=first_seen)
        pinned = self.columns.index("pinned") if self.keeps_pinned else None

        def pick(rows: Sequence[Row]) -> list[Row]:
            found = [row for row in rows if row[AUTHOR_ID] is not None and test(row)]
            if pinned is not None:
                found = [row for row in found if not row[pinned]]
            return [row for row in found if row[MESSAGE_ID] not in excluded] if excluded else found

        return pick

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object. Ids are strings, because JavaScript numbers cannot represent them."""
        return {
            "channels": [str(i) for i in self.channel_ids],
            "guild": None if self.guild_id is None else str(self.guild_id),
            "messages": [str(i) for i in self.message_ids],
            "where": None if self.where is None else filter_as_json(self.where),
            "with_pinned": self.with_pinned,
            "except": [str(i) for i in self.except_ids],
            "everything": self.everything,
            "except_channels": [str(i) for i in self.except_channel_ids],
            "within": None if self.within is None else self.within.as_json(),
        }

    def limited_to(self, scope: Scope) -> Selection:
        """Return the selection of a moderator who may delete within a scope. Named channels are checked one by one."""
        is_allowed = scope.is_everything or (self.guild_id is not None and scope.includes_guild(self.guild_id))
        return replace(self, within=None if self.channel_ids or is_allowed else scope)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Selection:
        """Restore a selection from the value that `as_json` returned."""
        return cls(
            channel_ids=tuple(map(int, value["channels"])),
            guild_id=None if value["guild"] is None else int(value["guild"]),
            message_ids=tuple(map(int, value["messages"])),
            where=None if value["where"] is None else filter_from_json(value["where"]),
            with_pinned=value["with_pinned"],
            except_ids=tuple(map(int, value["except"])),
            everything=value["everything"],
            # Purges of older versions have none.
            except_channel_ids=tuple(map(int, value.get("except_channels", ()))),
            within=Scope.from_json(value["within"]) if value.get("within") else None,
        )
