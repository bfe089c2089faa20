"""Messages that their authors deleted themselves, and unconfirmed claims of such deletions.

The row of a message contains its author. For a message that is gone, the author is unknown and the withdrawal is only
a claim, to be confirmed by code that has a copy with the author.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Withdrawals:
    """Withdrawals recorded for some messages.

    certain: ids that their authors withdrew while the message existed, and those recorded before the withdrawer was
    stored. claims: by id, the users who claimed a message that was gone.
    """

    certain: AbstractSet[int] = frozenset()
    claims: Mapping[int, AbstractSet[int]] = field(default_factory=dict)

    def has(self, message_id: int, *, author_id: int | None) -> bool:
        """Return whether its author withdrew the message. author_id: its author; None if unknown, then no claim
        counts.
        """
        return message_id in self.certain or author_id in self.claims.get(message_id, ())


NONE = Withdrawals()
