"""Every message of a manifest can be listed, before and after the purge."""

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.gateway.messages import withdraw_message
from moderation.domain.filters import Author
from moderation.domain.outcomes import PurgeOutcome
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.preview.exclusions import exclude_messages
from moderation.operations.preview.manifest import ManifestEntry, list_excluded, list_manifest
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.conftest import make_user
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    run_to_end,
    write,
)


def all_pages(user: User, purge: Purge, *, limit: int, author_id: int | None = None) -> list[list[ManifestEntry]]:
    pages, after = [], None
    while True:
        page = list_manifest(user, purge, after=after, author_id=author_id, limit=limit)
        pages.append(list(page.entries))
        if page.after is None:
            return pages
        after = page.after


def ids(entries: list[ManifestEntry]) -> list[int]:
    return [entry.message_id for entry in entries]


def test_its_pages_list_each_message_once_by_channel_and_time(mona: User, channel: Channel) -> None:
    other, old, recent = make_channel(), old_ids(130), recent_ids(20)
    write(channel, [*old[:30], *recent])
    write(other, old[30:])
    purge = preview(mona, Selection(channel_ids=(channel.pk, other.pk), where=Author((VICTOR,))))
    pages = all_pages(mona, purge, limit=50)
    assert [len(page) for page in pages] == [50, 50, 50]
    found = [(entry.channel.pk, entry.message_id) for page in pages for entry in page]
    assert found == sorted([(channel.pk, i) for i in [*old[:30], *recent]] + [(other.pk, i) for i in old[30:]])
    assert all(
        entry.is_live and entry.message and entry.outcome is PurgeOutcome.WAITING for page in pages for entry in page
    )


def test_the_list_can_be_filtered_by_author(mona: User, channel: Channel) -> None:
    written = old_ids(120)
    write(channel, written[::3])
    write(channel, [i for i in written if i not in written[::3]], author=WILMA)
    purge = preview(mona, everything(channel))
    pages = all_pages(mona, purge, limit=15, author_id=VICTOR)
    assert [i for page in pages for i in ids(page)] == written[::3]


def test_deleted_messages_are_shown_from_quarantine(mona: User, channel: Channel) -> None:
    old, recent = old_ids(150), recent_ids(5)
    write(channel, [*old, *recent], content="buy")
    purge = confirm(mona, preview(mona, everything(channel)))
    withdraw_message(channel.pk, old[3], actor=VICTOR)
    purge = run_to_end(purge)
    entries = [entry for page in all_pages(mona, purge, limit=50) for entry in page]
    assert ids(entries) == [*old, *recent]
    kept = {entry.message_id: entry.message.content for entry in entries if entry.message is not None}
    assert kept == {i: f"buy {i}" for i in [*old, *recent] if i != old[3]}
    assert not any(entry.is_live for entry in entries)
    assert {entry.outcome for entry in entries if entry.message_id != old[3]} == {PurgeOutcome.DELETED}
    assert entries[3].outcome is PurgeOutcome.ALREADY_GONE


def test_messages_withdrawn_after_deletion_are_not_readable(mona: User, channel: Channel) -> None:
    old = old_ids(6)
    write(channel, old, content="buy")
    purge = purge_now(mona, everything(channel))
    withdraw_message(channel.pk, old[3], actor=VICTOR)
    for author_id in (None, VICTOR):
        entries = list_manifest(mona, purge, author_id=author_id).entries
        assert ids(list(entries)) == old
        assert [entry.message_id for entry in entries if entry.message is None] == [old[3]]
        assert [entry.message_id for entry in entries if entry.is_withdrawn] == [old[3]]


def test_restored_messages_are_distinguished_from_deleted_ones(mona: User, channel: Channel) -> None:
    old = old_ids(120)
    write(channel, old[:100])
    write(channel, old[100:], author=WILMA)
    purge = purge_now(mona, everything(channel))
    request_undo(purge.pk, moderator=mona, part=UndoPart(author_ids=(WILMA,)), reason="Appeal accepted")
    purge = run_to_end(purge)
    entries = [entry for page in all_pages(mona, purge, limit=50) for entry in page]
    assert ids([entry for entry in entries if entry.is_undone and entry.is_live]) == old[100:]
    assert ids([entry for entry in entries if not entry.is_undone and not entry.is_live]) == old[:100]


def test_excluded_messages_have_a_list_of_their_own(mona: User, channel: Channel) -> None:
    old = old_ids(20)
    write(channel, old)
    purge = preview(mona, everything(channel))
    purge = exclude_messages(purge.pk, old[4:6], moderator=mona, manifest_hash=bytes(purge.manifest_hash or b""))
    assert ids(list_excluded(mona, purge)) == old[4:6]
    assert [entry.message.content for entry in list_excluded(mona, purge) if entry.message] == [
        f"hello {i}" for i in old[4:6]
    ]
    assert ids(list(list_manifest(mona, purge).entries)) == [i for i in old if i not in old[4:6]]


def test_users_without_access_to_the_channel_see_nothing(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    purge = preview(mona, everything(channel))
    assert list_manifest(make_user("tess", group=None), purge).entries == []
