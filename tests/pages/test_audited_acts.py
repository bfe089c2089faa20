"""Acts that the audit log records besides those on purges: reads, maintenance, findings, the admin, imports."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from chatstore.domain.runs import Severity
from chatstore.models import Finding, Guild, JobRun, JobSchedule
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import WRONG_SUMS, Problem, open_finding
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.purging.lifecycle import PREVIEW_LIFE, expire_previews
from tests.imports.exports import MAY, fresh_channel, ids_from, make_raw, write_export
from tests.moderation.channels import everything, make_channel, old_ids, preview, purge_now, write

SignIn = Callable[[User], Client]


def entries_of(actor: User | None, action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(actor=actor, action=action).order_by("id"))


@pytest.fixture
def purge(mona: User) -> Purge:
    channel = make_channel()
    write(channel, old_ids(20))
    return purge_now(mona, everything(channel))


def test_reading_a_saved_copy_is_recorded_once(lena: User, mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(20)
    write(channel, ids)
    client = sign_in(lena)
    url = f"/channels/{channel.pk}/{ids[3]}/"
    assert client.get(url).status_code == 200
    assert not entries_of(lena, "copy_read")
    purge_now(mona, everything(channel))
    for _ in range(2):
        assert client.get(url).status_code == 200
    (entry,) = entries_of(lena, "copy_read")
    assert (entry.channel_id, entry.details["message"]) == (channel.pk, str(ids[3]))
    assert entry.chat_user_id is not None
    assert client.get(f"/channels/{channel.pk}/{ids[4]}/").status_code == 200
    assert len(entries_of(lena, "copy_read")) == 2


def test_reading_the_messages_of_a_purge_is_recorded_once(lena: User, purge: Purge, sign_in: SignIn) -> None:
    for _ in range(2):
        assert sign_in(lena).get(f"/purges/{purge.pk}/messages/").status_code == 200
    (entry,) = entries_of(lena, "copies_read")
    assert entry.purge_id == purge.pk


def test_reviewing_a_preview_is_no_read_of_removed_content(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(5))
    previewed = preview(mona, everything(channel))
    assert sign_in(mona).get(f"/purges/{previewed.pk}/messages/").status_code == 200
    assert not entries_of(mona, "copies_read")


def test_an_expired_preview_is_recorded(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(5))
    previewed = preview(mona, everything(channel))
    Purge.objects.filter(pk=previewed.pk).update(ready_at=postgres_now() - PREVIEW_LIFE - dt.timedelta(minutes=1))
    assert expire_previews() >= 1
    previewed.refresh_from_db()
    assert previewed.state == PurgeState.EXPIRED
    (entry,) = AuditEntry.objects.filter(purge=previewed, action="preview_expired")
    assert entry.actor is None


def test_a_schedule_is_recorded_with_its_old_and_its_new_value(otto: User, sign_in: SignIn) -> None:
    typed = {"cron": "15 3 * * *", "zone": "Europe/Berlin", "is_enabled": "1"}
    assert sign_in(otto).post("/maintenance/jobs/sums/", typed).status_code == 302
    (entry,) = entries_of(otto, "schedule_changed")
    JobSchedule.objects.filter(pk="sums").delete()
    assert entry.details == {
        "job": "sums",
        "before": {"cron": "0 8 * * *", "zone": "UTC", "hours": [], "is_enabled": True},
        "after": {"cron": "15 3 * * *", "zone": "Europe/Berlin", "hours": [], "is_enabled": True},
        "address": "127.0.0.1",
    }


def test_an_invalid_schedule_is_not_recorded(otto: User, sign_in: SignIn) -> None:
    assert sign_in(otto).post("/maintenance/jobs/sums/", {"cron": "99", "zone": "UTC"}).status_code == 400
    assert not entries_of(otto, "schedule_changed")


def test_requested_and_stopped_runs_are_recorded(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    client = sign_in(otto)
    assert client.post(f"/channels/{channel.pk}/health/probe/").status_code == 302
    (requested,) = entries_of(otto, "run_requested")
    run = JobRun.objects.get(job="probe", subject=str(channel.pk))
    assert (requested.channel_id, requested.details["run"]) == (channel.pk, str(run.pk))
    for _ in range(2):
        assert client.post(f"/maintenance/runs/{run.pk}/stop/").status_code == 302
    (stopped,) = entries_of(otto, "run_stopped")
    assert stopped.details["job"] == "probe"


def test_an_acknowledged_finding_is_recorded(otto: User, sign_in: SignIn) -> None:
    finding = open_finding(WRONG_SUMS, secrets.token_hex(8), Problem(Severity.WARNING, "wrong"))
    assert sign_in(otto).post(f"/findings/{finding.pk}/acknowledge/").status_code == 302
    (entry,) = entries_of(otto, "finding_acknowledged")
    Finding.objects.filter(pk=finding.pk).delete()
    named = {"finding": WRONG_SUMS, "subject": finding.subject, "summary": "wrong"}
    assert entry.details == {**named, "address": "127.0.0.1"}


def test_an_account_in_the_admin_is_recorded_without_its_password(ada: User, sign_in: SignIn) -> None:
    client, name, password = sign_in(ada), f"mika-{secrets.token_hex(4)}", secrets.token_urlsafe(12)
    made = client.post(
        "/admin/auth/user/add/",
        {"username": name, "password1": password, "password2": password, "usable_password": "true"},
    )
    assert made.status_code == 302, made.content
    account = User.objects.get(username=name)
    changed = client.post(f"/admin/auth/user/{account.pk}/change/", {"username": name, "is_active": "on"})
    assert changed.status_code == 302, changed.content
    (added,) = entries_of(ada, "account_added")
    (entry,) = entries_of(ada, "account_changed")
    assert (added.details["name"], entry.details["is_active"]) == (name, True)
    assert password not in f"{added.details}{entry.details}"


def test_raid_settings_in_the_admin_are_recorded(ada: User, sign_in: SignIn) -> None:
    guild = Guild.objects.create(pk=secrets.randbits(60), name="Harbour")
    typed = {"guild": guild.pk, "is_enabled": "on", "messages_per_minute": 77, "accounts": 9}
    typed |= {"times_usual": 5, "account_days": 7, "first_seen_hours": 24, "same_text_accounts": 3}
    typed |= {"account_messages": 6, "mentions": 5, "links": 3}
    made = sign_in(ada).post("/admin/moderation/raidsettings/add/", typed)
    assert made.status_code == 302, made.content
    (entry,) = entries_of(ada, "raid_settings_added")
    assert entry.details["messages_per_minute"] == 77


def test_a_channel_that_the_admin_moves_to_another_guild_is_recorded(ada: User, sign_in: SignIn) -> None:
    channel = make_channel()
    other = Guild.objects.create(pk=secrets.randbits(60), name="Harbour")
    typed = {"guild": other.pk, "kind": channel.kind, "name": channel.name, "category": "", "topic": ""}
    moved = sign_in(ada).post(f"/admin/chatstore/channel/{channel.pk}/change/", typed)
    assert moved.status_code == 302, moved.content
    (entry,) = entries_of(ada, "channel_changed")
    assert (entry.channel_id, entry.guild_id, entry.details["fields"]) == (channel.pk, other.pk, ["Server"])


@pytest.mark.parametrize(
    ("model", "action", "typed"),
    [
        ("guild", "guild_added", {}),
        ("channel", "channel_added", {"kind": "text"}),
        ("chatuser", "chat_user_added", {"display_name": "Mo"}),
    ],
)
def test_rows_of_the_chat_that_the_admin_adds_are_recorded(
    model: str, action: str, typed: dict[str, str], ada: User, sign_in: SignIn
) -> None:
    row = secrets.randbits(60)
    made = sign_in(ada).post(f"/admin/chatstore/{model}/add/", {"id": row, "name": "harbour", **typed})
    assert made.status_code == 302, made.content
    (entry,) = entries_of(ada, action)
    assert entry.details["id"] == str(row)


def test_an_import_is_recorded_before_and_after(tmp_path: Path) -> None:
    path = write_export(tmp_path / "import.json", fresh_channel(), [make_raw(one) for one in ids_from(MAY, 3)])
    newest = AuditEntry.objects.order_by("-id").values_list("pk", flat=True).first() or 0
    call_command("import_discord", str(path), "--dry-run")
    assert not AuditEntry.objects.filter(pk__gt=newest, action="import_started").exists()
    call_command("import_discord", str(path))
    started, ended = AuditEntry.objects.filter(pk__gt=newest, details__account__startswith="command line").order_by(
        "id"
    )
    assert (started.action, started.details["paths"]) == ("import_started", [str(path)])
    assert (ended.action, ended.details["written"]) == ("messages_imported", 3)


def test_exports_of_the_audit_log_are_recorded_with_their_filters(ada: User, sign_in: SignIn) -> None:
    sign_in(ada).get("/audit/export.csv?action=hold_placed&since=2026-11-01").close()
    (entry,) = entries_of(ada, "audit_exported")
    assert entry.details["filters"] == {"action": "hold_placed", "since": "2026-11-01"}


def test_an_act_that_fails_leaves_no_entry(otto: User, sign_in: SignIn) -> None:
    client = sign_in(otto)
    assert client.post("/findings/0/acknowledge/").status_code == 404
    assert client.post("/maintenance/runs/0/stop/").status_code == 404
    assert client.post("/maintenance/jobs/merge/run/").status_code == 400
    assert not AuditEntry.objects.filter(actor=otto).exclude(action="signed_in").exists()
    assert connection.in_atomic_block is False
