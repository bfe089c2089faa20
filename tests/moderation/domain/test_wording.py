"""A selection is summarised in one sentence."""

import pytest

from chatstore.domain.snowflakes import first_id_at
from moderation.domain.filters import All, AnyOf, Author, Content, FromBot, Has, Not, Pattern, ReplyTo, Since, Words
from moderation.domain.selection import Selection
from moderation.presentation.wording import say_selection

MAY = Since(first_id_at(1_714_521_600_000))
VICTOR = Author((7,))


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (
            Selection(channel_ids=(1,), where=All((Author((7, 8)), MAY)), with_pinned=True),
            "everything by Victor or user 8 in #general since 1 May 2024",
        ),
        (
            Selection(channel_ids=(1,), where=All((VICTOR, MAY, Has(Content.LINK)))),
            "everything by Victor in #general since 1 May 2024 containing a link, pinned kept",
        ),
        (
            Selection(channel_ids=(1,), where=All((AnyOf((Words("free nitro"), FromBot())), Not(VICTOR)))),
            "everything in #general (saying “free nitro” or by bots) and not by Victor, pinned kept",
        ),
        (
            Selection(channel_ids=(1,), where=AnyOf((Pattern("a+"), ReplyTo(5)))),
            "everything in #general matching /a+/ or replying to message 5, pinned kept",
        ),
        (
            Selection(channel_ids=(1,), where=VICTOR, except_ids=(5, 6)),
            "everything by Victor in #general, pinned kept, 2 unticked",
        ),
        (Selection(channel_ids=(1,), everything=True), "the whole channel #general"),
        (Selection(channel_ids=(1,), message_ids=(1, 2, 3), except_ids=(3,)), "2 ticked messages in #general"),
    ],
)
def test_a_selection_reads_as_a_sentence(selection: Selection, said: str) -> None:
    assert say_selection(selection, place="in #general", authors={7: "Victor"}) == said
