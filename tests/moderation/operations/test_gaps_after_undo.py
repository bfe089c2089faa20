"""Restored messages are no longer shown as a gap."""

from django.contrib.auth.models import User

from moderation.operations.lookup.gaps import find_gaps
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.moderation.rooms import everything, make_channel, old_ids, purge_now, write


def test_a_gap_shrinks_with_what_is_brought_back_and_closes(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(150)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))

    def gaps() -> list[int]:
        found = find_gaps(channel.id, [], after=ids[0] - 1, before=ids[-1] + 1)
        return [gap.count for gap in found.get(None, [])]

    assert gaps() == [150]
    ask_undo(purge.id, moderator=mona, part=UndoPart(message_ids=tuple(ids[:30])))
    run_purge(purge.id)
    assert gaps() == [120]
    ask_undo(purge.id, moderator=mona, part=UndoPart())
    run_purge(purge.id)
    assert gaps() == []
