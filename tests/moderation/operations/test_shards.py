"""Rows of a guild have ids that carry its logical shard."""

from __future__ import annotations

import secrets

from chatstore.domain.reports import ReportCategory
from chatstore.domain.row_ids import decode_row_id, shard_of
from chatstore.models import Channel, Guild, Report, ReportCase
from chatstore.models.users import User
from chatstore.operations.reports import record_report
from moderation.domain.filters import All, Author
from moderation.domain.selection import Selection
from moderation.models import AuditEntry
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import VICTOR, confirm, everything, make_channel, old_ids, preview, write

IDS = old_ids(3)


def channel_of_new_guild() -> Channel:
    """Return a channel with `IDS` of Victor, in a guild of its own whose shard is not 0."""
    guild = Guild.objects.create(pk=secrets.randbelow(2**40) * 2_000 + 1 + secrets.randbelow(1_999), name="Tidewalkers")
    channel = make_channel(guild=guild)
    write(channel, IDS)
    return channel


def shards_of(ids: list[int]) -> set[int]:
    return {decode_row_id(row_id).shard for row_id in ids}


def test_a_purge_in_one_guild_its_undo_and_its_audit_carry_its_shard(mona: User) -> None:
    channel = channel_of_new_guild()
    purge = confirm(mona, preview(mona, everything(channel)))
    run_purge(purge.pk)
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_purge(purge.pk)
    entries = list(AuditEntry.objects.filter(purge=purge).values_list("pk", flat=True))
    assert len(entries) >= 5
    assert shards_of([purge.pk, undo.pk, *entries]) == {shard_of(channel.guild_id)}


def test_a_purge_in_several_guilds_carries_shard_0_and_its_entries_those_of_their_channels(mona: User) -> None:
    one, other = channel_of_new_guild(), channel_of_new_guild()
    in_both = Selection(channel_ids=(one.pk, other.pk), where=All((Author((VICTOR,)),)))
    purge = confirm(mona, preview(mona, in_both))
    run_purge(purge.pk)
    assert shards_of([purge.pk]) == {0}
    for channel in (one, other):
        entry = AuditEntry.objects.get(purge=purge, action="channel_purged", channel_id=channel.pk)
        assert shards_of([entry.pk]) == {shard_of(channel.guild_id)}


def test_holds_and_reports_carry_the_shard_of_their_channel(lena: User) -> None:
    channel = channel_of_new_guild()
    hold = place_hold(HoldRequest(channel=str(channel.pk)), reason="Court order", actor=lena)
    record_report(channel.pk, IDS[0], reporter_id=VICTOR, category=ReportCategory.SPAM, text="", author_id=None)
    case = ReportCase.objects.get(channel=channel, message_id=IDS[0])
    report = Report.objects.get(case=case)
    assert shards_of([hold.pk, case.pk, report.pk]) == {shard_of(channel.guild_id)}


def test_what_belongs_to_no_channel_carries_shard_0(lena: User) -> None:
    hold = place_hold(HoldRequest(author=str(secrets.randbits(50))), reason="Court order", actor=lena)
    assert shards_of([hold.pk]) == {0}
