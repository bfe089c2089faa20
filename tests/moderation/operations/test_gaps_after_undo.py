"""Restored messages are no longer shown as a gap."""

from chatstore.models.users import User
from moderation.operations.lookup.gaps import find_gaps
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import everything, make_channel, old_ids, purge_now, write


def test_a_gap_shrinks_as_messages_are_restored_and_closes(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(150)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))

    def gaps() -> list[int]:
        found = find_gaps(mona, channel.id, [], after=ids[0] - 1, before=ids[-1] + 1)
        return [gap.count for gap in found.get(None, [])]

    assert gaps() == [150]
    request_undo(purge.id, moderator=mona, part=UndoPart(message_ids=tuple(ids[:30])), reason="Appeal accepted")
    run_purge(purge.id)
    assert gaps() == [120]
    request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_purge(purge.id)
    assert gaps() == []
