"""Objects of a guild for the fuzz, with texts that no answer to other people may contain."""

from __future__ import annotations

import gzip
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.test import Client, override_settings

from chatstore.domain.roles import Grant, Role
from chatstore.domain.runs import Severity
from chatstore.models import Channel, Finding, Guild, ReportCase, RoleGrant
from chatstore.models.users import User
from moderation.models import AuditEntry, Purge, PurgeLimits, StaffSession
from moderation.operations.access.invitations import invite
from moderation.operations.access.sessions import list_sessions
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.notes import add_note
from moderation.operations.purging.approvals import approve_purge, reject_approval
from moderation.operations.raids.detection import RAID
from moderation.operations.selection.parsing import Description, Terms
from moderation.operations.selection.saved_filters import save_filter
from tests.chatstore.reports import report
from tests.conftest import give, make_user
from tests.moderation.channels import VICTOR, now_ms, old_ids, recent_ids, run_to_end, write
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request


@dataclass(frozen=True, slots=True)
class Planted:
    """The objects of a guild, and texts that only those may read who may see it.

    names: values of parameters and fields. texts: a word that is in all of them, and the key of the session. outsiders:
    people who may not, by a label.
    """

    channel: Channel
    names: Mapping[str, Any]
    texts: tuple[str, ...]
    outsiders: Mapping[str, User]

    def is_untouched(self) -> bool:
        """Return whether the request for approval, the raid, the report and the session are still open."""
        return (
            Purge.objects.get(pk=self.names["awaiting"]).approvals.open().exists()
            and Finding.objects.open().filter(pk=self.names["finding_id"]).exists()
            and ReportCase.objects.open().free().filter(pk=self.names["reported"]).exists()
            and StaffSession.objects.filter(pk=self.texts[1]).exists()
        )


@contextmanager
def planted_objects(archives: Path) -> Iterator[Planted]:
    """Make the objects of `plant_objects`, with the settings of an archive. At the end no raid is open."""
    with override_settings(
        AUDIT_RETENTION_DAYS=3_650, AUDIT_ARCHIVE_DIR=str(archives), AUDIT_ARCHIVE_KEY=secrets.token_hex(32)
    ):
        yield plant_objects(archives)
    Finding.objects.filter(kind=RAID).delete()


def plant_objects(archives: Path) -> Planted:
    """Make a guild with an open request for approval, a rejected and an approved one, a raid, and a report.

    Beside it: a hold, a note, a filter, limits, an invitation, a session, and an archive of the audit log. archives:
    folder for the latter.
    """
    word = f"w{secrets.token_hex(6)}"
    channel = make_guild_channel(f"{word} guild")
    Channel.objects.filter(pk=channel.pk).update(name=f"{word}-channel")
    limit(channel, messages_without_approval=10)
    mona, lena = member("mona", Role.MODERATOR, channel), member("lena", Role.LEAD, channel)
    awaiting, rejected, approved = (preview_some(mona, count, channel) for count in (20, 15, 12))
    asked, refused, given = (request(mona, one, reason=f"{word} reason") for one in (awaiting, rejected, approved))
    reject_approval(rejected.pk, refused.pk, approver=lena, reason=f"{word} rejected")
    run_to_end(approve_purge(approved.pk, given.pk, approver=lena))
    raided = _make_raid(channel, word)
    case = report(channel, old_ids(20)[-1], text=f"{word} report")
    invited, token = invite(
        f"nora-{secrets.token_hex(4)}", [Grant(Role.AUDITOR)], actor=make_user("ada", group="admins")
    )
    hold = place_hold(HoldRequest(channel=str(channel.pk)), reason=f"{word} hold", actor=lena)
    note = add_note(VICTOR, text=f"{word} note", link=f"/channels/{channel.pk}/{old_ids(20)[-1]}/", actor=mona)
    description = Description(all=Terms(words=f"{word} words"))
    saved = save_filter(description, moderator=mona, name=f"{word} filter", is_shared=True)
    browser = Client()
    browser.force_login(mona)
    session_key = browser.session.session_key or ""
    archive = archives / "audit-000000000001-000000000002.jsonl.gz"
    archive.write_bytes(gzip.compress(f'{{"reason":"{word} archived"}}'.encode()))
    names = {
        "awaiting": awaiting.pk,
        "rejected": rejected.pk,
        "approved": approved.pk,
        "approval": (asked.pk, refused.pk, given.pk),
        "raided": channel.pk,
        "finding_id": raided.pk,
        "reported": case.pk,
        "hold_id": hold.pk,
        "note_id": note.pk,
        "filter_id": saved.pk,
        "limits_id": PurgeLimits.objects.get(guild=channel.guild).pk,
        "member": lena.pk,
        "given": RoleGrant.objects.get(account=lena).pk,
        "about_approval": AuditEntry.objects.filter(purge=awaiting, action="approval_requested").get().pk,
        "grant_id": RoleGrant.objects.filter(account=invited).get().pk,
        "token": token,
        "session": list_sessions(mona, current_key=None)[0].id,
        "file": archive.name,
        "planted_guild": channel.guild_id,
    }
    return Planted(channel, names, (word, session_key), _outsiders())


def _make_raid(channel: Channel, word: str) -> Finding:
    write(channel, recent_ids(20, minutes_ago=5))
    since = now_ms() - 600_000
    details = {"channel": str(channel.pk), "since_ms": since, "messages": 20, "accounts": 3}
    return Finding.objects.create(
        kind=RAID, subject=str(channel.pk), severity=Severity.CRITICAL, summary=f"{word} raid", details=details
    )


def _outsiders() -> dict[str, User]:
    """Return staff without a role, and each role of another guild."""
    other = Guild.objects.create(pk=secrets.randbits(40) + 2**42, name="Crabs")
    found = {"no role": make_user("tess", group=None)}
    for role in (Role.MODERATOR, Role.LEAD, Role.AUDITOR, Role.ADMIN):
        found[f"{role.value} elsewhere"] = account = make_user("gus", group=None)
        give(account, role, guild_id=other.pk)
    return found
