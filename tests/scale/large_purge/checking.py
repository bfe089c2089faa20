"""Checks of a large purge and of its undo: every count, and what the store has in a sample of channels."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from chatstore.models import ChannelLock
from chatstore.store import ledger
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.purging.sums_check import has_wrong_sums
from moderation.operations.steps.claiming import job_of
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import undo_totals_of
from tests.bench import baseline
from tests.scale.large_purge.filling import KEPT, LargeGuild, Row

SAMPLE = 200
"""Channels whose rows are compared."""

_ROWS = (
    "SELECT message_id, author_id, type, content, writetime(author_id) FROM messages "
    "WHERE channel_id = ? AND bucket = ?"
)


class CheckFailed(Exception):
    """The purge did something else than it was to."""


def check_preview(guild: LargeGuild, purge: Purge) -> None:
    """Check that exactly the accounts' messages were found. Raises `CheckFailed`."""
    _check("state", purge.state, PurgeState.READY)
    _check("manifest", purge.manifest, guild.messages)
    _check("messages that were read", purge.scanned, guild.messages + KEPT * guild.channels)
    _check_rows(guild, guild.rows_of)


def check_purged(guild: LargeGuild, purge: Purge) -> None:
    """Check that all of it was deleted and verified, and nothing else. Raises `CheckFailed`."""
    _check("state", purge.state, PurgeState.DONE)
    _check_totals(totals_of(purge).as_json(), manifest=guild.messages, deleted=guild.messages)
    _check_ended(purge)
    _check_rows(guild, guild.kept_rows_of)
    for channel_id in _sample(guild):
        live = ledger.read_live(channel_id, guild.bucket)
        _check(f"ledger of channel {channel_id}", live and live.count, KEPT)


def check_undone(guild: LargeGuild, purge: Purge) -> None:
    """Check that all of it was restored as it was. Raises `CheckFailed`."""
    _check("state", purge.state, PurgeState.UNDONE)
    total = undo_totals_of(purge.undos.latest("id"))
    _check_totals(total.as_json(), requested=guild.messages, restored=guild.messages)
    _check_ended(purge)
    _check_rows(guild, guild.rows_of, with_times=False)


def _check_totals(totals: Mapping[str, int], **expected: int) -> None:
    """Check that all other totals are 0."""
    _check("totals", totals, dict.fromkeys(totals, 0) | expected)


def _check_ended(purge: Purge) -> None:
    _check("locked channels", ChannelLock.objects.filter(job=job_of(purge.pk)).count(), 0)
    _check("wrong sums", has_wrong_sums(purge.pk), False)


def _check_rows(guild: LargeGuild, expected: Callable[[int], list[Row]], *, with_times: bool = True) -> None:
    session, statement = baseline.bare_session(), baseline.prepared(_ROWS)
    columns = slice(2, None if with_times else -1)
    for channel_id in _sample(guild):
        rows = sorted(session.execute(statement.bind((channel_id, guild.bucket))))
        found = [row if with_times else row[:-1] for row in rows]
        _check(f"rows of channel {channel_id}", found, [row[columns] for row in expected(channel_id)])


def _sample(guild: LargeGuild) -> list[int]:
    return random.Random(guild.id).sample(guild.channel_ids, min(SAMPLE, guild.channels))


def _check(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise CheckFailed(f"{what}: {str(found)[:500]} instead of {str(expected)[:500]}")
