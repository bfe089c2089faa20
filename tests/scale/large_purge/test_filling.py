"""A filled guild can be previewed, purged and undone, and its checks notice what differs."""

from __future__ import annotations

import pytest

from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import confirm, preview, run_to_end
from tests.scale.large_purge.checking import CheckFailed, check_preview, check_purged, check_undone
from tests.scale.large_purge.filling import KEPT, LargeGuild, fill_guild, find_filled


def test_a_filled_guild_is_purged_and_undone(mona: User) -> None:
    lines: list[str] = []
    guild = fill_guild(channels=3, messages=360, report=lines.append)
    assert lines == ["3 of 3 channels are filled"]
    assert find_filled(channels=3, messages=360) == guild
    purge = preview(mona, Selection(guild_id=guild.id, where=Author(tuple(guild.accounts))))
    check_preview(guild, purge)
    run_to_end(confirm(mona, purge))
    purge.refresh_from_db()
    check_purged(guild, purge)
    with pytest.raises(CheckFailed, match="state"):
        check_undone(guild, purge)
    with pytest.raises(CheckFailed, match="manifest"):
        check_preview(guild, preview(mona, Selection(guild_id=guild.id, where=Author((guild.bystander,)))))
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="test")
    run_to_end(purge)
    purge.refresh_from_db()
    check_undone(guild, purge)


@pytest.mark.unit
def test_each_channel_has_as_many_messages_of_the_accounts_and_some_that_are_kept() -> None:
    guild = LargeGuild(1_200_000_000_000_000_000, channels=50_000, messages=10_000_000)
    rows = guild.rows_of(guild.channel_ids[-1])
    kept = guild.kept_rows_of(guild.channel_ids[-1])
    assert (len(rows), len(kept)) == (200 + KEPT, KEPT)
    assert {row[3] for row in rows} == {guild.bystander, *guild.accounts}
    assert sorted(rows) == rows
    assert {row[1] for row in rows} == {guild.bucket}
    assert not {row[2] for row in rows}.intersection(row[2] for row in guild.rows_of(guild.channel_ids[0]))
