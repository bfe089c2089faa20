"""What people withdrew, and whose word that is.

Of a message that is there the store knows who wrote it. Of one that is gone it does not: then
whoever says that he withdraws it only claims it, and whoever knows its author settles the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Withdrawals:
    """What was noted of some messages.

    certain: ids that their authors withdrew while they were there, and such as were noted before it was
    kept who did. claims: by id, who claimed a message that was gone.
    """

    certain: AbstractSet[int] = frozenset()
    claims: Mapping[int, AbstractSet[int]] = field(default_factory=dict)

    def has(self, message_id: int, *, author_id: int | None) -> bool:
        """Whether its author withdrew the message. author_id: who wrote it; None: nobody knows, and no claim counts."""
        return message_id in self.certain or author_id in self.claims.get(message_id, ())


NONE = Withdrawals()
