"""A preview is narrowed by one click: to one author, or to all but one author or channel."""

from __future__ import annotations

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.exclusions import exclude_messages, excluded_messages, include_messages
from moderation.operations.preview.narrowing import Narrow, keep_author, keep_channel, keep_other_authors
from moderation.operations.preview.scan import scan_purge
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    confirm,
    everything,
    expected_manifest_hash,
    ids_of,
    make_channel,
    old_ids,
    preview,
    run_to_end,
    write,
)

IDS = old_ids(40)


@pytest.fixture
def channel() -> Channel:
    """Return a channel in which Victor and Wilma wrote in turn."""
    channel = make_channel()
    write(channel, IDS[::2])
    write(channel, IDS[1::2], author=WILMA)
    return channel


def hash_of(purge: Purge) -> bytes:
    return bytes(purge.manifest_hash or b"")


def narrow(how: Narrow, moderator: User, purge: Purge, number: int) -> Purge:
    """Narrow a preview; scan it if it is a new one."""
    narrowed = how(purge.pk, number, moderator=moderator, manifest_hash=hash_of(purge))
    scan_purge(narrowed.pk)
    narrowed.refresh_from_db()
    return narrowed


@pytest.mark.parametrize(("how", "left"), [(keep_author, IDS[1::2]), (keep_other_authors, IDS[::2])])
def test_an_author_is_kept_or_left_alone(how: Narrow, left: list[int], mona: User, channel: Channel) -> None:
    shown = preview(mona, everything(channel))
    for purge in (shown, preview(mona, Selection(channel_ids=(channel.pk,), message_ids=tuple(IDS)))):
        narrowed = narrow(how, mona, purge, VICTOR)
        assert (narrowed.state, hash_of(narrowed)) == (PurgeState.READY, expected_manifest_hash(channel, left))
    # The narrower preview replaces the one of the whole channel.
    shown.refresh_from_db()
    assert shown.state == PurgeState.EXPIRED


def test_excluded_messages_stay_excluded_and_can_be_included_again(mona: User, channel: Channel) -> None:
    shown = preview(mona, everything(channel))
    shown = exclude_messages(shown.pk, [IDS[1]], moderator=mona, manifest_hash=hash_of(shown))
    narrowed = narrow(keep_author, mona, shown, VICTOR)
    assert (narrowed.manifest, excluded_messages(narrowed)) == (19, [(channel.pk, IDS[1])])
    again = include_messages(narrowed.pk, [IDS[1]], moderator=mona, manifest_hash=hash_of(narrowed))
    assert hash_of(again) == expected_manifest_hash(channel, IDS[1::2])


def test_a_channel_is_kept_without_another_scan(mona: User, channel: Channel) -> None:
    other = make_channel()
    write(other, IDS[:10])
    named = Selection(channel_ids=(channel.pk, other.pk), where=Author((VICTOR, WILMA)))
    shown = preview(mona, named)
    shown = exclude_messages(shown.pk, [IDS[11]], moderator=mona, manifest_hash=hash_of(shown))
    kept = keep_channel(shown.pk, channel.pk, moderator=mona, manifest_hash=hash_of(shown))
    assert (kept.pk, kept.state, kept.manifest) == (shown.pk, PurgeState.READY, 10)
    assert (hash_of(kept), excluded_messages(kept)) == (expected_manifest_hash(other, IDS[:10]), [])
    with pytest.raises(BadInput, match="has changed since"):
        confirm(mona, shown)
    run_to_end(confirm(mona, kept))
    assert (ids_of(channel, bucket_of(IDS[0])), ids_of(other, bucket_of(IDS[0]))) == (IDS, [])


def test_a_preview_is_narrowed_only_as_it_was_shown_and_by_moderators(mona: User, otto: User, channel: Channel) -> None:
    shown = preview(mona, everything(channel))
    for how, number in ((keep_author, VICTOR), (keep_other_authors, VICTOR), (keep_channel, channel.pk)):
        with pytest.raises(Forbidden):
            how(shown.pk, number, moderator=otto, manifest_hash=hash_of(shown))
        with pytest.raises(BadInput, match="has changed since"):
            how(shown.pk, number, moderator=mona, manifest_hash=b"x" * 32)
    with pytest.raises(BadInput):
        keep_channel(shown.pk, channel.pk, moderator=mona, manifest_hash=hash_of(shown))
    shown.refresh_from_db()
    assert (shown.state, shown.manifest) == (PurgeState.READY, 40)
