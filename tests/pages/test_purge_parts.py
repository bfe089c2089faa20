"""Parts of a purge with plain forms: single messages excluded before, one author or channel restored afterwards."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel, ChatUser
from chatstore.models.users import User
from chatstore.operations.gateway.messages import withdraw_message
from moderation.domain.filters import AnyOf, Author, Words
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.holds import HoldRequest, lift_hold, place_hold
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.controls import CONTROLS
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.chatstore.channels import fresh_id
from tests.chatstore.reports import report
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    confirm,
    ids_of,
    make_channel,
    name_authors,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.pages.conftest import PreviewedPurge
from tests.pages.reading import read_html
from tests.pages.test_receipt import lines_of
from tests.pages.test_without_script import read_fields

SignIn = Callable[[User], Client]
CountQueries = Callable[[int], AbstractContextManager[object]]


@pytest.fixture
def channels() -> tuple[Channel, Channel]:
    """Create two channels with ten messages each of Victor and Wilma."""
    name_authors()
    channels, ids = (make_channel(), make_channel()), old_ids(40)
    for n, channel in enumerate(channels):
        mine = ids[20 * n : 20 * n + 20]
        write(channel, mine[::2])
        write(channel, mine[1::2], author=WILMA)
    return channels


def everything_in(channels: Sequence[Channel]) -> Selection:
    where = AnyOf((Author((VICTOR, WILMA)), Words("never said")))
    return Selection(channel_ids=tuple(channel.pk for channel in channels), where=where)


def bucket() -> int:
    return bucket_of(old_ids(1)[0])


def test_a_message_is_excluded_and_included_again(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/"
    listed = read_html(client, f"{path}messages/")
    assert re.findall(r'name="message_id" value="(-?\d+)"', listed) == [str(i) for i in previewed.victor_ids]
    fields = read_fields(listed, f"{path}exclude/")
    response = client.post(f"{path}exclude/", {**fields, "message_id": str(previewed.victor_ids[2])})
    assert response["Location"] == f"{path}messages/"
    page = read_html(client, path)
    assert "Delete 5 messages" in page
    assert "1 message excluded" in page
    assert fields["manifest_hash"] not in page
    back = read_fields(read_html(client, f"{path}messages/"), f"{path}include/")
    client.post(f"{path}include/", {**back, "message_id": str(previewed.victor_ids[2])})
    assert f'name="manifest_hash" value="{fields["manifest_hash"]}"' in read_html(client, path)


def test_the_list_tells_what_is_to_be_deleted_deleted_and_restored(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/messages/"

    def rows() -> list[tuple[str, str]]:
        pattern = r'<div class="entry ([\w-]*)">.*?<span class="outcome">([^<]*)<'
        return re.findall(pattern, read_html(client, path), re.DOTALL)

    assert rows() == [("to-delete", "to delete")] * 6
    purge = run_to_end(confirm(previewed.moderator, previewed.purge))
    assert rows() == [("deleted", "deleted")] * 6
    part = UndoPart(message_ids=tuple(previewed.victor_ids[:2]))
    request_undo(purge.pk, moderator=previewed.moderator, part=part, reason="Appeal accepted")
    run_to_end(purge)
    assert rows() == [("restored", "restored")] * 2 + [("deleted", "deleted")] * 4


def test_the_list_counts_what_was_restored_of_a_part(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn, django_assert_max_num_queries: CountQueries
) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/messages/"
    purge = run_to_end(confirm(previewed.moderator, previewed.purge))

    def counts() -> list[str]:
        return re.findall(r'class="summary">\s*(.*?)\s*</p>', read_html(client, path), re.DOTALL)

    def restore_some(*message_ids: int) -> None:
        part = UndoPart(message_ids=message_ids)
        request_undo(purge.pk, moderator=previewed.moderator, part=part, reason="Appeal accepted")
        run_to_end(purge)

    with CaptureQueriesContext(connection) as whole:
        assert counts() == []
    restore_some(*previewed.victor_ids[:2])
    with django_assert_max_num_queries(len(whole) + 1):
        assert counts() == ["4 deleted, 2 restored"]
    # An undo left this one deleted.
    withdraw_message(previewed.channel.pk, previewed.victor_ids[2], actor=VICTOR)
    restore_some(*previewed.victor_ids[2:4])
    assert counts() == ["2 deleted, 3 restored"]
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.UNDO_EXPIRED)
    assert counts() == ["2 deleted, 3 restored"]


def test_the_list_of_one_author_or_channel_keeps_or_restores_it(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    client, purge = sign_in(mona), preview(mona, everything_in(channels))
    path, other = f"/purges/{purge.pk}/", channels[1].pk
    listed = read_html(client, f"{path}messages/")
    assert f'href="{path}messages/?channel={other}"' in listed
    assert "Keep this" not in listed
    for query, name in ((f"channel={other}", "keep_channel"), (f"author={WILMA}", "keep_author")):
        listed = read_html(client, f"{path}messages/?{query}")
        fields = read_fields(listed, f"{path}narrow/") | {name: query.split("=")[1]}
        assert f'name="{name}" value="{fields[name]}"' in listed
        response = client.post(f"{path}narrow/", fields)
        path = response["Location"]
        purge = Purge.objects.get(pk=int(path.strip("/").split("/")[1]))
        if purge.state == PurgeState.SCANNING:
            scan_purge(purge.pk)
            purge.refresh_from_db()
    run_to_end(confirm(mona, purge))
    assert ids_of(channels[0], bucket()) == old_ids(40)[1:20:2]
    listed = read_html(client, f"{path}messages/?author={VICTOR}&channel={channels[0].pk}")
    assert "Restore these messages" not in read_html(client, f"{path}messages/")
    offer = re.search(rf'href="({path}undo/\?[^"]*)"', listed)
    assert offer is not None
    assert "Restore 10 messages?" in read_html(client, html.unescape(offer[1]))
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    assert "Restore these messages" not in read_html(client, f"{path}messages/?author={VICTOR}")


def test_only_this_author_leaves_a_preview_of_the_author_alone(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    client, purge = sign_in(mona), preview(mona, everything_in(channels))
    path = f"/purges/{purge.pk}/"
    page = read_html(client, path)
    assert f'name="only_author" value="{WILMA}"' in page
    response = client.post(f"{path}narrow/", read_fields(page, f"{path}narrow/") | {"only_author": str(WILMA)})
    narrowed = Purge.objects.get(pk=int(response["Location"].strip("/").split("/")[1]))
    if narrowed.state == PurgeState.SCANNING:
        scan_purge(narrowed.pk)
        narrowed.refresh_from_db()
    assert narrowed.manifest == 20
    run_to_end(confirm(mona, narrowed))
    assert ids_of(channels[0], bucket()) == old_ids(40)[0:20:2]
    assert ids_of(channels[1], bucket()) == old_ids(40)[20:40:2]


def test_a_preview_changed_meanwhile_is_shown_in_its_current_state(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/exclude/"
    fields = {"manifest_hash": bytes(previewed.purge.manifest_hash or b"").hex()}
    assert client.post(path, {**fields, "message_id": str(previewed.victor_ids[0])}).status_code == 302
    for more, expected in (
        ({**fields, "message_id": str(previewed.victor_ids[1])}, "has changed since"),
        (fields, "No messages are selected"),
        ({"message_id": str(previewed.victor_ids[1])}, "incomplete"),
        ({**fields, "message_id": "x"}, "not an ID"),
    ):
        response = client.post(path, more)
        assert response.status_code == 400
        assert expected in response.content.decode()
        assert "Delete 5 messages" in response.content.decode()


def test_a_list_continues_at_its_cursor_and_refuses_an_invalid_one(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/messages/"
    after = f"{previewed.channel.pk}:{previewed.victor_ids[3]}"
    assert read_html(client, f"{path}?after={after}").count('name="message_id"') == 2
    assert "There are no more messages" in read_html(
        client, f"{path}?after={previewed.channel.pk}:{previewed.victor_ids[-1]}"
    )
    assert read_html(client, f"{path}?channel=5").count('name="message_id"') == 0
    for query in ("after=5", "after=a:b", "channel=x", "author=x", "after=5:99999999999999999999"):
        assert client.get(f"{path}?{query}").status_code == 400, query


def test_the_preview_counts_by_channel_and_author(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    page = read_html(sign_in(mona), f"/purges/{preview(mona, everything_in(channels)).pk}/")
    for channel in channels:
        row = rf'/channels/{channel.pk}/\?at=[\d-]+">\s*<bdi>#room</bdi>\s*</a>\s*</td>'
        assert re.search(rf'{row}\s*<td [^>]*class="num"[^>]*>\s*<a[^>]*>\s*20\s*<', page)
    assert re.search(r"<dt>Channels</dt>\s*<dd>2</dd>", page)
    assert "All are deleted right away." in page
    assert page.count("time-strip") == 2


def test_the_list_of_a_channel_includes_purges_of_many_channels(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    purge, client = preview(mona, everything_in(channels)), sign_in(mona)
    for channel in channels:
        page = read_html(client, f"/purges/?channel={channel.pk}")
        assert "40 messages in #room and #room" in page
        assert f'href="/purges/{purge.pk}/"' in page
        assert f'href="?channel={channel.pk}&amp;state=done"' in page
    assert f"/purges/{purge.pk}/" not in read_html(client, f"/purges/?channel={make_channel().pk}")


def test_an_author_without_deleted_messages_is_refused_with_the_reason(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    purge = purge_now(mona, everything_in(channels))
    response = sign_in(mona).post(f"/purges/{purge.pk}/undo/", {"author": str(WILMA + 1)})
    assert response.status_code == 400
    assert "This purge did not delete any of the requested messages." in response.content.decode()


def test_an_author_then_a_channel_then_selected_messages_are_restored(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    client = sign_in(mona)
    purge = purge_now(mona, everything_in(channels))
    path, ids = f"/purges/{purge.pk}/", old_ids(40)

    def undo(fields: dict[str, str | list[str]]) -> str:
        assert client.post(f"{path}undo/", {**fields, "reason": "Appeal accepted"}).status_code == 302
        run_purge(purge.pk, idle_timeout_seconds=60)
        return read_html(client, path)

    page = read_html(client, path)
    assert "Restore Victor 71 (20)" in page
    page = undo({"author": str(VICTOR)})
    assert outcome_of(page) == ["20", "20"]
    assert ids_of(channels[0], bucket()) == ids[:20:2]
    assert "Restore Victor 71" not in page
    page = undo({"channel": str(channels[0].pk)})
    assert outcome_of(page) == ["30", "10"]
    assert ids_of(channels[0], bucket()) == ids[:20]
    assert ids_of(channels[1], bucket()) == ids[20::2]
    listed = read_html(client, f"{path}messages/")
    assert re.findall(r'name="message_id" value="(-?\d+)"', listed) == [str(i) for i in ids[21::2]]
    page = undo({"selected": "1", "message_id": [str(ids[21]), str(ids[23])]})
    assert outcome_of(page) == ["32", "8"]
    assert "Restore the other 8 messages" in page
    assert ids_of(channels[1], bucket()) == sorted([*ids[20::2], ids[21], ids[23]])


def outcome_of(page: str) -> list[str]:
    """Return how many messages the receipt counts as restored, and as still deleted."""
    return [lines_of(page)[name] for name in ("restored since", "still deleted")]


def restores_of(page: str, purge: Purge) -> dict[str, str]:
    """Return the links that restore a channel, by its ID."""
    return dict(re.findall(rf'href="/purges/{purge.pk}/undo/\?channel=(\d+)">(\w+ \d+)<', page))


def notes_of(page: str) -> list[str]:
    """Return the notes of channels without such a link."""
    return re.findall(r'share-action">\s*<span[^>]*>([^<]*)<', page)


def test_a_channel_is_restored_by_the_link_in_its_row(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    client, purge = sign_in(mona), purge_now(mona, everything_in(channels))
    path, ids, (first, second) = f"/purges/{purge.pk}/", old_ids(40), channels
    page = read_html(client, path)
    assert restores_of(page, purge) == {str(first.pk): "Restore 20", str(second.pk): "Restore 20"}
    asked = read_html(client, f"{path}undo/?channel={second.pk}")
    fields = read_fields(asked, f"{path}undo/")
    assert fields.keys() & {"author", "channel", "message_ids"} == {"channel"}
    assert fields["channel"] == str(second.pk)
    assert "Restore 20 messages?" in asked
    assert client.post(f"{path}undo/", {**fields, "reason": "Appeal accepted"}).status_code == 302
    run_to_end(purge)
    assert (ids_of(first, bucket()), ids_of(second, bucket())) == ([], ids[20:])
    page = read_html(client, path)
    assert restores_of(page, purge) == {str(first.pk): "Restore 20"}
    assert notes_of(page) == ["restored"]


def restored_of(page: str) -> dict[int, int]:
    """Return the column "Restored" of the table of channels, by channel; empty if there is none."""
    table = page.partition('aria-labelledby="by-channel">\n      <thead')[2].partition("</table>")[0]
    cells = re.findall(r'\?channel=(\d+)">20</a>\s*</td>\s*<td[^>]* data-label="Restored">\s*(\d+)\s*</td>', table)
    assert table.count(">Restored</th>") == bool(cells)
    return {int(channel_id): int(count) for channel_id, count in cells}


def test_the_table_of_channels_counts_what_was_restored_in_each(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    client, purge, ids = sign_in(mona), purge_now(mona, everything_in(channels)), old_ids(40)
    path, (first, second) = f"/purges/{purge.pk}/", channels

    def page_after(part: UndoPart) -> str:
        request_undo(purge.pk, moderator=mona, part=part, reason="Appeal accepted")
        run_to_end(purge)
        return read_html(client, path)

    assert restored_of(read_html(client, path)) == {}
    assert restored_of(page_after(UndoPart(message_ids=tuple(ids[:2])))) == {first.pk: 2, second.pk: 0}
    assert restored_of(page_after(UndoPart(channel_ids=(second.pk,)))) == {first.pk: 2, second.pk: 20}
    # Of an undo that left some deleted it is not known in which channel.
    withdraw_message(first.pk, ids[2], actor=VICTOR)
    page = page_after(UndoPart(message_ids=tuple(ids[2:4])))
    assert restored_of(page) == {}
    assert restores_of(page, purge) == {str(first.pk): "Restore 16"}


def test_a_channel_of_which_a_hold_kept_all_is_not_offered(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    confirmed = confirm(mona, preview(mona, everything_in(channels)))
    place_hold(HoldRequest(channel=str(channels[0].pk)), reason="case 1", actor=mona)
    purge = run_to_end(confirmed)
    page = read_html(sign_in(mona), f"/purges/{purge.pk}/")
    assert restores_of(page, purge) == {str(channels[1].pk): "Restore 20"}
    assert notes_of(page) == ["not deleted"]


@pytest.mark.parametrize("is_in_every_channel", [False, True])
def test_an_author_whom_a_hold_kept_is_not_offered(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn, is_in_every_channel: bool
) -> None:
    held, selected = fresh_id(), [channel.pk for channel in channels]
    for channel in channels:
        write(channel, old_ids(3, buckets_ago=20), author=held)
    selection = Selection(channel_ids=tuple(selected), where=Author((VICTOR, held)))
    confirmed = confirm(mona, preview(mona, selection))
    for place in [""] if is_in_every_channel else map(str, selected):
        place_hold(HoldRequest(author=str(held), channel=place), reason="case 1", actor=mona)
    page = read_html(sign_in(mona), f"/purges/{run_to_end(confirmed).pk}/")
    assert "Restore Victor 71 (20)" in page
    assert page.count("kept by a hold") == 1
    assert f"Restore user {held}" not in page
    ChatUser.objects.get_or_create(pk=held, defaults={"name": "held"})
    assert f"/undo/?author={held}" not in read_html(sign_in(mona), f"/users/{held}/")


def test_purges_of_which_a_hold_kept_all_of_an_author_are_marked_where_they_are_listed(
    channels: tuple[Channel, Channel], mona: User, lena: User, sign_in: SignIn
) -> None:
    client, held, ids = sign_in(mona), fresh_id(), old_ids(4, buckets_ago=20)
    write(channels[0], ids, author=held)
    ChatUser.objects.create(pk=held, name="held")
    case = report(channels[0], ids[3], author=held)
    pages = (f"/users/{held}/", f"/users/{held}/panel/", f"/reports/{case.pk}/")

    def marks() -> list[int]:
        return [read_html(client, path).count(">kept by a hold</span>") for path in pages]

    # First a purge without a hold, then one from which a hold keeps everything.
    for at in (0, 1):
        one = Selection(channel_ids=(channels[0].pk,), message_ids=(ids[at],))
        confirmed = confirm(mona, preview(mona, one))
        hold = place_hold(HoldRequest(author=str(held)), reason="case 1", actor=mona) if at else None
        run_to_end(confirmed)
        assert marks() == [at, at, at]
    assert "(kept by a hold)" not in read_html(client, pages[0])
    assert hold is not None
    lift_hold(hold.pk, actor=lena, reason="The case is closed")
    # What was kept then, was kept.
    assert marks() == [1, 1, 1]


def test_messages_of_which_a_hold_kept_all_are_not_counted_as_deleted(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    held = fresh_id()
    write(channels[0], old_ids(3, buckets_ago=20), author=held)
    ChatUser.objects.create(pk=held, name="held")
    confirmed = confirm(mona, preview(mona, Selection(channel_ids=(channels[0].pk,), where=Author((held,)))))
    place_hold(HoldRequest(author=str(held)), reason="case 1", actor=mona)
    run_to_end(confirmed)
    page = read_html(sign_in(mona), f"/users/{held}/")
    assert re.search(r"3 messages included in a purge\s*\(kept by a hold\)", page)
    assert re.search(r"<dt>Purges</dt>\s*<dd>\s*1\s*<span[^>]*>\(kept by a hold\)", page)


def test_messages_that_an_author_deleted_after_a_hold_kept_them_are_in_no_lower_bound(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    held, ids = fresh_id(), old_ids(3, buckets_ago=20)
    write(channels[0], ids, author=held)
    ChatUser.objects.create(pk=held, name="held")
    confirmed = confirm(mona, preview(mona, Selection(channel_ids=(channels[0].pk,), where=Author((held,)))))
    place_hold(HoldRequest(author=str(held)), reason="case 1", actor=mona)
    run_to_end(confirmed)
    for message_id in ids:
        withdraw_message(channels[0].pk, message_id, actor=held)
    client = sign_in(mona)
    # Then none are read in time.
    with override_settings(PAGE_DEADLINE_SECONDS=0):
        page, panel = (" ".join(read_html(client, f"/users/{held}/{part}").split()) for part in ("", "panel/"))
    for shown in (page, panel):
        assert "All messages</dt> <dd> 0 or more <" in shown
    assert "3 messages included in a purge (kept by a hold)" in page


def test_an_author_of_whom_a_hold_kept_a_part_is_offered_without_a_number(
    channels: tuple[Channel, Channel], mona: User, sign_in: SignIn
) -> None:
    confirmed = confirm(mona, preview(mona, everything_in(channels)))
    place_hold(HoldRequest(author=str(WILMA), channel=str(channels[0].pk)), reason="case 1", actor=mona)
    page = read_html(sign_in(mona), f"/purges/{run_to_end(confirmed).pk}/")
    assert re.findall(r">(Restore \w+ 7[12].*?)</a>", page) == ["Restore Victor 71", "Restore Wilma 72"]
    assert "kept by a hold" not in page


def test_an_author_is_offered_again_once_held_messages_were_deleted_after_all(
    channels: tuple[Channel, Channel], mona: User, lena: User, sign_in: SignIn
) -> None:
    confirmed = confirm(mona, preview(mona, everything_in(channels)))
    placed = [
        place_hold(HoldRequest(author=str(WILMA), channel=str(channel.pk)), reason="case 1", actor=mona)
        for channel in channels
    ]
    purge = run_to_end(confirmed)
    for hold in placed:
        lift_hold(hold.pk, actor=lena, reason="The case is closed")
    assert "kept by a hold" in read_html(sign_in(mona), f"/purges/{purge.pk}/")
    CONTROLS["retry"](purge.pk, moderator=mona)
    page = read_html(sign_in(mona), f"/purges/{run_to_end(purge).pk}/")
    assert "Restore Wilma 72 (20)" in page


def test_no_selection_does_not_mean_everything(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    purge = purge_now(mona, Selection(channel_ids=(previewed.channel.pk,), where=Author((VICTOR,))))
    response = sign_in(mona).post(f"/purges/{purge.pk}/undo/", {"selected": "1"})
    assert response.status_code == 400
    assert "No messages are selected" in response.content.decode()
    assert not Purge.objects.get(pk=purge.pk).undos.exists()


def test_fifty_authors_of_a_purge_can_be_restored_one_by_one(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(60)
    for number, message_id in enumerate(ids):
        write(channel, [message_id], author=VICTOR + number)
    purge = purge_now(mona, Selection(channel_ids=(channel.pk,), message_ids=tuple(ids)))
    page = read_html(sign_in(mona), f"/purges/{purge.pk}/")
    assert len(re.findall(rf'href="/purges/{purge.pk}/undo/\?author=\d+', page)) == 50
    assert "Show the next 6 of the 44 other authors" in page
    assert "Show 38 more authors" in page
    assert "and 10 other authors" in page
