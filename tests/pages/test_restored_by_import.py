"""The audit and the purge page show which messages `import_discord --restore` restored, and who requested it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.undo.import_guard import RESTORED_BY_IMPORT
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.changed_audit_log import change_audit_log
from tests.conftest import make_user
from tests.imports.exports import MAY, VICTOR, fresh_channel, ids_from, live_ids, make_raw, write_export
from tests.moderation.channels import choose, purge_now, run_to_end
from tests.pages.reading import read_page
from tests.pages.test_receipt import lines_of

SignIn = Callable[[User], Client]

IDS = ids_from(MAY, 70)
CHIP = "restored by an import with <code>--restore</code>, "


def restore(path: Path, *options: str) -> None:
    call_command("import_discord", str(path), "--restore", *options, stdout=io.StringIO())


def listed(shown: str) -> list[int]:
    return sorted({int(found) for found in re.findall(r"/channels/\d+/(\d+)/", shown)})


@pytest.fixture
def channel_id() -> int:
    return fresh_channel()


@pytest.fixture
def path(tmp_path: Path, channel_id: int) -> Path:
    """Write an export that was already imported."""
    path = write_export(tmp_path / "pier.json", channel_id, [make_raw(i) for i in IDS])
    call_command("import_discord", str(path), stdout=io.StringIO())
    return path


def test_the_purge_page_shows_how_many_were_restored_by_whom_and_which(
    mona: User, sign_in: SignIn, tmp_path: Path, path: Path, channel_id: int
) -> None:
    first = purge_now(mona, choose(channel_id, message_ids=tuple(IDS[:60])))
    other = purge_now(mona, choose(channel_id, message_ids=tuple(IDS[60:])))
    some = write_export(tmp_path / "some.json", channel_id, [make_raw(i) for i in IDS[2:63]])
    lena = make_user("lena", group="leads")
    restore(some, "--as", lena.username)
    restore(path)
    assert live_ids(channel_id, IDS) == IDS

    entries = AuditEntry.objects.filter(purge=first, action=RESTORED_BY_IMPORT).order_by("id")
    assert [(entry.actor, unpack_ids(entry.ids), entry.channel_id) for entry in entries] == [
        (lena, IDS[2:60], channel_id),
        (User.objects.get(username="command-line"), IDS[:2], channel_id),
    ]
    client = sign_in(mona)
    shown = read_page(client, f"/purges/{first.pk}/")
    expected = f"58 messages were {CHIP}requested by <b>{lena.username}</b>"
    assert expected in shown
    assert f"2 messages were {CHIP}requested by <b>command-line<" in shown
    by_lena, by_command = re.findall(r"/messages/\?import=[0-9a-f]{32}", shown)
    one = read_page(client, f"/purges/{first.pk}{by_lena}")
    assert f"Only messages restored by an import, requested by <b>{lena.username}</b>" in one
    assert listed(one) == IDS[2:52]
    [after] = re.findall(r'href="(\?after=[^"]*import=[0-9a-f]{32})"', one)
    assert listed(read_page(client, f"/purges/{first.pk}/messages/{after}")) == IDS[52:60]
    assert listed(read_page(client, f"/purges/{first.pk}{by_command}")) == IDS[:2]
    assert "3 messages were restored" in read_page(client, f"/purges/{other.pk}/")
    assert client.get(f"/purges/{first.pk}/messages/?import=all").status_code == 400
    ada = make_user("ada", group=None)
    ada.is_superuser = True
    ada.save()
    entry = read_page(sign_in(ada), f"/admin/moderation/auditentry/{entries[0].pk}/change/")
    assert ", ".join(map(str, IDS[2:60])) in entry


def test_the_list_and_the_receipt_count_them_apart_from_those_that_an_undo_restored(
    mona: User, sign_in: SignIn, tmp_path: Path, path: Path, channel_id: int
) -> None:
    purge, client = purge_now(mona, choose(channel_id, message_ids=tuple(IDS[:20]))), sign_in(mona)
    restore(write_export(tmp_path / "some.json", channel_id, [make_raw(i) for i in IDS[:8]]))
    request_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=tuple(IDS[8:11])), reason="Appeal accepted")
    run_to_end(purge)
    lines = lines_of(read_page(client, f"/purges/{purge.pk}/"))
    names = ("Deleted", "restored since", "restored by an import", "still deleted")
    assert [lines[name] for name in names] == ["20", "3", "8", "9"]
    listed = read_page(client, f"/purges/{purge.pk}/messages/")
    assert "9 deleted, 3 restored, 8 restored by an import" in " ".join(listed.split())


def test_the_list_and_the_receipt_count_those_of_an_import_alone(
    mona: User, sign_in: SignIn, tmp_path: Path, path: Path, channel_id: int
) -> None:
    purge, client = purge_now(mona, choose(channel_id, message_ids=tuple(IDS[:20]))), sign_in(mona)
    restore(write_export(tmp_path / "some.json", channel_id, [make_raw(i) for i in IDS[:8]]))
    lines = lines_of(read_page(client, f"/purges/{purge.pk}/"))
    assert (lines["restored by an import"], lines["still deleted"]) == ("8", "12")
    assert "restored since" not in lines
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.UNDO_EXPIRED)
    listed = read_page(client, f"/purges/{purge.pk}/messages/")
    assert "12 deleted, 8 restored by an import" in " ".join(listed.split())


def test_a_purge_of_several_channels_lists_restored_messages_of_each(
    mona: User, sign_in: SignIn, tmp_path: Path, path: Path, channel_id: int
) -> None:
    second = fresh_channel()
    write_export(tmp_path / "quay.json", second, [make_raw(i + 1) for i in IDS[:5]])
    call_command("import_discord", str(tmp_path), stdout=io.StringIO())
    where = Author((VICTOR,))
    purge = purge_now(mona, Selection(channel_ids=tuple(sorted((channel_id, second))), where=where))
    restore(write_export(tmp_path / "more" / "pier.json", channel_id, [make_raw(i) for i in IDS[5:8]]).parent)
    write_export(tmp_path / "all" / "pier.json", channel_id, [make_raw(i) for i in IDS[:5]])
    write_export(tmp_path / "all" / "quay.json", second, [make_raw(i + 1) for i in IDS[:5]])
    restore(tmp_path / "all")
    client = sign_in(mona)
    shown = read_page(client, f"/purges/{purge.pk}/")
    more, everything = re.findall(r"/messages/\?import=[0-9a-f]{32}", shown)
    assert listed(read_page(client, f"/purges/{purge.pk}{more}")) == IDS[5:8]
    both = sorted([*IDS[:5], *(i + 1 for i in IDS[:5])])
    assert listed(read_page(client, f"/purges/{purge.pk}{everything}")) == both
    narrowed = read_page(client, f"/purges/{purge.pk}{everything}&channel={second}")
    assert listed(narrowed) == [i + 1 for i in IDS[:5]]


def test_restoring_needs_the_permission_to_undo(mona: User, path: Path, channel_id: int) -> None:
    purge = purge_now(mona, choose(channel_id, message_ids=tuple(IDS[:5])))
    tess = make_user("tess", group=None)
    for name, message in ((tess.username, "does not have permission"), ("no-such-user", "no account called")):
        with pytest.raises(CommandError, match=message) as refused:
            restore(path, "--as", name)
        assert "import again" not in str(refused.value)
    assert live_ids(channel_id, IDS) == IDS[5:]
    assert not AuditEntry.objects.filter(purge=purge, action=RESTORED_BY_IMPORT).exists()


def test_a_restore_without_a_recorded_requester_shows_it(
    mona: User, sign_in: SignIn, path: Path, channel_id: int
) -> None:
    purge: Purge = purge_now(mona, choose(channel_id, message_ids=tuple(IDS[:5])))
    assert purge.state == PurgeState.DONE
    restore(path)
    change_audit_log(
        "UPDATE moderation_auditentry SET actor_id = NULL, ids = NULL, details = %s "
        "WHERE (purge_id, action) = (%s, %s)",
        '{"bucket": 1, "ids": 5}',
        purge.pk,
        RESTORED_BY_IMPORT,
    )
    shown = read_page(sign_in(mona), f"/purges/{purge.pk}/")
    assert f"5 messages were {CHIP}" in shown
    assert "Who requested it was not recorded." in shown
    assert "?import=" not in shown
