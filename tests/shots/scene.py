"""Data for the screenshots: a channel with a spam wave, a hostile one, and purges in each state."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from django.core.management import call_command

from chatstore.domain.reports import Resolution
from chatstore.domain.roles import Role
from chatstore.gateway import Member, MemberRole, report_message, save_members
from chatstore.models import ReportCase
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.gateway.timeline import open_timeline
from moderation.domain.filters import All, Author, Content, Has, Not
from moderation.domain.limits import Limits
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.management.demo_accounts import CAST
from moderation.models import Purge
from moderation.operations.access.limits import set_limits
from moderation.operations.erasure.execution import erase_purge
from moderation.operations.erasure.requests import approve_erasure, request_erasure
from moderation.operations.holds import HoldRequest, lift_hold, place_hold
from moderation.operations.notes import add_note
from moderation.operations.preview.exclusions import exclude_messages
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.approvals import request_approval
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.execution import WRITTEN_AGAIN
from moderation.operations.purging.lifecycle import discard_preview, draft_purge
from moderation.operations.purging.quarantine import describe_unknown_columns
from moderation.operations.purging.worker import run_purge
from moderation.operations.raids.detection import check_raids, open_raid
from moderation.operations.reports.resolving import claim_case, resolve_case
from moderation.operations.steps.claiming import job_of
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import choose, confirm, preview
from tests.moderation.raids import Raid, write_raid
from tests.moderation.stored_sums import store_sums
from tests.pages.conftest import make_invitation
from tests.pages.exports import SampleExport, write_hostile, write_sample_export
from tests.pages.second_factors import set_up
from tests.pages.serving import create_account
from tests.shots.health import UnhealthyChannel, make_unhealthy_channel
from tests.shots.maintenance import MaintenanceScene, make_maintenance_scene
from tests.shots.neighbours import make_neighbours
from tests.shots.running_purge import make_running_purge

RESOLUTION_REASONS = {
    Resolution.KEPT: "Within the rules",
    Resolution.REMOVED: "Spam, and not the first time",
    Resolution.NOTHING: "Was sorted out in the channel",
}
REPORT_TEXTS = ("", "the third time today", "Is this allowed? It looks like the scam of last week to me.", "spam")
"""Texts of members' reports."""

ROLES = (MemberRole("Harbour master", "#e67e22"), MemberRole("Navigator", "#3498db"), MemberRole("Crew"))
"""Roles of members, the highest first; one in four has none."""

LONG_ROLE = MemberRole("Keeper of the long charts and of all the lanterns", "#9b59b6")
"""The highest role of the people of the raided guild."""

CHANNELS = ("general", "ferry-talk", "night-shift", "rota")
"""Channels with messages, of one guild and with the same people."""

REASON = "Spam wave, reported by three members"
"""Reason of most purges."""

HOLD_SECONDS = 5400
"""Long enough for all screenshots: of a purge that waits for a channel locked by an import, of claimed reports."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The objects that the list of pages refers to."""

    accounts: dict[str, tuple[str, str]]
    protected: tuple[str, str]
    protected_id: int
    sample: SampleExport
    hostile: int
    scanning: Purge
    ready: Purge
    done: Purge
    waiting: Purge
    nothing: Purge
    discarded: Purge
    undone: Purge
    paused: Purge
    many: Purge
    partly: Purge
    erased: Purge
    erased_message: int
    limited_by_hold: Purge
    held_user: int
    behind: Purge
    failed: Purge
    running: Purge
    raided: int
    raided_guild: int
    raider: int
    raid_finding: int
    asking: Purge
    invitation: str
    message: int
    removed: int
    removed_author: int
    back: int
    unhealthy: UnhealthyChannel
    maintenance: MaintenanceScene
    reported: int
    reported_own: int
    reported_claimed: int
    decided: int
    neighbours: list[int]


def arrange_scene(folder: Path) -> Scene:
    """Import the channels and bring each purge to its state. Takes about 30 seconds."""
    until = dt.datetime.now(dt.UTC)
    accounts = {name: create_account(name) for name in CAST}
    protected = create_account("mona")
    mona, lena, otto, ada = (User.objects.get(username=accounts[name][0]) for name in ("mona", "lena", "otto", "ada"))
    samples: list[SampleExport] = []
    for n, name in enumerate(CHANNELS):
        # One second apart, because message ids are unique across channels.
        at, beside = until - dt.timedelta(seconds=n), samples[0] if samples else None
        samples.append(write_sample_export(_fresh(folder / name), until=at, spam=1204, name=name, beside=beside))
    sample, emptied, held, undone_channel = samples
    hostile, _ = write_hostile(folder, until=until)
    call_command("import_discord", str(folder), verbosity=0)
    undone = _purge(mona, _of_victor(undone_channel))
    request_undo(undone.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    undone = run_purge(undone.pk, idle_timeout_seconds=60)
    partly = _purge(mona, _by_three_authors(undone_channel, held), reason="Off-topic in two channels")
    request_undo(
        partly.pk, moderator=mona, part=UndoPart(author_ids=(undone_channel.people["Ines"],)), reason="Appeal accepted"
    )
    partly = run_purge(partly.pk, idle_timeout_seconds=60)
    erased = _erase(mona, lena, ada, undone_channel, requested=partly)
    limited_by_hold = _hold(mona, lena, undone_channel)
    many = preview(mona, _with_links(sample, emptied, undone_channel))
    many = exclude_messages(
        many.pk, _first_ids(many)[:2], moderator=mona, manifest_hash=bytes(many.manifest_hash or b"")
    )
    paused = confirm(mona, preview(mona, _by_ines(held)), reason="Request of the author")
    blocked = confirm(mona, preview(mona, _of_victor(held)), reason=REASON)
    lock_channel(held.channel_id, job="import:pictures", lease_seconds=HOLD_SECONDS)
    done = _purge(mona, _of_victor(emptied))
    failed = _fail_some(_purge(mona, _by_ines(emptied), reason="Request of the author"))
    by_wilma = choose(emptied.channel_id, author_ids=(emptied.people["Wilma"],))
    behind = confirm(mona, preview(mona, by_wilma), reason="Request of the author")
    lock_channel(emptied.channel_id, job=job_of(done.pk))
    message = open_timeline(sample.channel_id).messages[20].message_id
    cases = _report_some(mona, lena, sample)
    raid = write_raid(raiders=37, each=11, apart_ms=450)
    _save_members(sample, raid)
    unhealthy = make_unhealthy_channel(mona, otto, beside=[one.channel_id for one in samples])
    return Scene(
        accounts=accounts,
        protected=protected,
        protected_id=_protect(protected),
        sample=sample,
        hostile=hostile,
        scanning=_scan_some(mona, _with_links(sample, emptied, undone_channel)),
        ready=preview(mona, _of_victor(sample)),
        done=done,
        waiting=run_purge(blocked.pk, idle_timeout_seconds=0),
        undone=undone,
        paused=pause_purge(paused.pk, moderator=mona),
        many=many,
        behind=run_purge(behind.pk, idle_timeout_seconds=0),
        failed=failed,
        running=make_running_purge(mona),
        raided=raid.channel.pk,
        raided_guild=raid.channel.guild_id or 0,
        raider=min(raid.raiders),
        raid_finding=_report_raid(raid),
        asking=_ask_for_approval(mona, ada, raid),
        invitation=make_invitation(),
        partly=partly,
        erased=erased,
        erased_message=_first_selected_id(erased),
        limited_by_hold=limited_by_hold,
        held_user=undone_channel.people["Aiko"],
        nothing=preview(mona, choose(sample.channel_id, author_ids=(5,))),
        discarded=_discard(mona, preview(mona, _by_ines(undone_channel))),
        message=message,
        removed=_first_selected_id(done),
        removed_author=emptied.victor,
        back=_first_selected_id(undone),
        unhealthy=unhealthy,
        maintenance=make_maintenance_scene(otto, channel_id=sample.channel_id, message_id=message, unhealthy=unhealthy),
        reported=cases[8],
        reported_own=cases[7],
        reported_claimed=cases[6],
        decided=cases[1],
        neighbours=[*make_neighbours(sample.channel_id), sample.channel_id],
    )


def _protect(account: tuple[str, str]) -> int:
    """Give the account a second factor; return the account's id."""
    user = User.objects.get(username=account[0])
    set_up(user)
    return user.pk


def _save_members(sample: SampleExport, raid: Raid) -> None:
    """Give roles to the people of the channels, and let the raiders have joined minutes ago."""
    now = dt.datetime.now(dt.UTC)
    # Between the creation of their accounts and their first messages.
    old = now - dt.timedelta(days=440)
    people = enumerate(sample.people.values())
    save_members(sample.guild_id, [Member(user_id, old, ROLES[n % 4 :][:2]) for n, user_id in people])
    if raid.channel.guild_id is not None:
        save_members(raid.channel.guild_id, [Member(user_id, old, (LONG_ROLE, *ROLES)) for user_id in raid.members])
        ago = (dt.timedelta(minutes=10 + n % 7) for n in range(len(raid.raiders)))
        new = [Member(user_id, now - since) for user_id, since in zip(sorted(raid.raiders), ago, strict=True)]
        save_members(raid.channel.guild_id, new)


def _purge(mona: User, selection: Selection, *, reason: str = REASON) -> Purge:
    """Run a purge to its end."""
    return run_purge(confirm(mona, preview(mona, selection), reason=reason).pk, idle_timeout_seconds=60)


def _report_some(mona: User, lena: User, sample: SampleExport) -> list[int]:
    """Report a dozen messages and write notes; return the cases: three are resolved, two are claimed."""
    newest = open_timeline(sample.channel_id, limit=14).messages
    cases = []
    for number, message in enumerate(newest):
        reporters = [user_id for user_id in sample.people.values() if user_id != message.author_id]
        for reporter, text in list(zip(reporters, REPORT_TEXTS, strict=False))[: 1 + number % 4]:
            report_message(sample.channel_id, message.message_id, actor=reporter, category="spam", text=text)
        case = ReportCase.objects.open().get(channel_id=sample.channel_id, message_id=message.message_id)
        cases.append(case.pk)
        add_note(message.author_id, text=f"Warned in a direct message, case {number}", link="", actor=lena)
    claim_case(cases[6], actor=lena)
    claim_case(cases[7], actor=mona)
    until = postgres_now() + dt.timedelta(seconds=HOLD_SECONDS)
    ReportCase.objects.filter(pk__in=cases[6:8]).update(claimed_until=until)
    for number, resolution in enumerate((Resolution.KEPT, Resolution.REMOVED, Resolution.NOTHING)):
        actor = (mona, lena)[number % 2]
        case = resolve_case(cases[number], actor=actor, resolution=resolution, reason=RESOLUTION_REASONS[resolution])
        if case.purge_id is not None:
            run_purge(case.purge_id, idle_timeout_seconds=60)
    return cases


def _hold(mona: User, lena: User, sample: SampleExport) -> Purge:
    """Run a purge that is limited by a hold; also lift another hold."""
    held, free = sample.people["Aiko"], sample.people["Tomás"]
    purge = confirm(mona, preview(mona, choose(sample.channel_id, author_ids=(held, free))), reason=REASON)
    channel = str(sample.channel_id)
    place_hold(HoldRequest(author=str(held), channel=channel), reason="Asked for by the police, case 71", actor=mona)
    lifted = place_hold(HoldRequest(author=str(free), channel=channel), reason="A report of 3 May is open", actor=mona)
    lift_hold(lifted.pk, actor=lena, reason="The case is closed")
    return run_purge(purge.pk, idle_timeout_seconds=60)


def _report_raid(raid: Raid) -> int:
    """Have the monitor find the raid; return the finding, which `make_maintenance_scene` closes."""
    check_raids(postgres_now())
    finding = open_raid(raid.channel.pk)
    assert finding is not None
    return finding.pk


def _ask_for_approval(mona: User, ada: User, raid: Raid) -> Purge:
    """Limit the moderators of the raided guild, and have one of them request approval."""
    limits = Limits(messages_without_approval=100, messages_per_hour=5_000)
    set_limits(Role.MODERATOR, raid.channel.guild_id, limits, actor=ada)
    purge = preview(mona, choose(raid.channel.pk, author_ids=sorted(raid.raiders)))
    manifest_hash = bytes(purge.manifest_hash or b"")
    request_approval(purge.pk, moderator=mona, reason="Raid of tonight, all new accounts", manifest_hash=manifest_hash)
    return purge


def _erase(mona: User, lena: User, ada: User, sample: SampleExport, *, requested: Purge) -> Purge:
    """Erase the copies of a purge; for another purge only request it."""
    chosen = choose(sample.channel_id, author_ids=(sample.people["Jonas"],))
    purge = _purge(mona, chosen, reason="Request of the author")
    request = request_erasure(purge.pk, moderator=lena, reason="Personal data of a minor, request 71")
    approve_erasure(purge.pk, request.pk, moderator=ada)
    erase_purge(purge.pk)
    request_erasure(requested.pk, moderator=lena, reason="Addresses of members, request 72")
    return purge


def _fail_some(purge: Purge) -> Purge:
    """Mark messages of two buckets as failed: a dozen that came back, and all of one bucket."""
    steps = list(purge.steps.order_by("-count"))
    back = unpack_ids(steps[0].ids)[:12]
    for step, ids, error in (
        (steps[0], back, WRITTEN_AGAIN),
        (steps[1], unpack_ids(steps[1].ids), describe_unknown_columns(("mood",))),
    ):
        failed = {"failed": len(ids), "failed_ids": pack_ids(ids), "error": error}
        purge.steps.filter(ordinal=step.ordinal).update(deleted=step.count - len(ids), **failed)
    store_sums()
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.DONE_WITH_FAILURES)
    return purge


def _first_selected_id(purge: Purge) -> int:
    """Return the first message included in a purge."""
    return min(first for first in purge.manifest_buckets.values_list("first_id", flat=True) if first is not None)


def _scan_some(mona: User, selection: Selection) -> Purge:
    """Begin a scan that no worker continues: two channels are scanned."""
    purge = draft_purge(moderator=mona, selection=selection)
    while purge.manifest_buckets.values("channel_id").distinct().count() < len(selection.channel_ids) - 1:
        scan_purge(purge.pk, ends_turn=lambda: True)
    Purge.objects.filter(pk=purge.pk).update(scan_lease_until=ClockTimestamp() + dt.timedelta(seconds=HOLD_SECONDS))
    purge.refresh_from_db()
    return purge


def _discard(mona: User, purge: Purge) -> Purge:
    discard_preview(purge.pk, moderator=mona)
    return purge


def _by_ines(sample: SampleExport) -> Selection:
    return choose(sample.channel_id, author_ids=(sample.people["Ines"],))


def _by_three_authors(one: SampleExport, other: SampleExport) -> Selection:
    authors = (one.people["Ines"], one.people["Wilma"], other.people["Priya"])
    return Selection(channel_ids=(one.channel_id, other.channel_id), where=Author(authors))


def _with_links(*samples: SampleExport) -> Selection:
    where = All((Has(Content.LINK), Not(Author((samples[0].people["Ines"],)))))
    return Selection(channel_ids=tuple(sample.channel_id for sample in samples), where=where)


def _first_ids(purge: Purge) -> list[int]:
    return unpack_ids(purge.steps.order_by("ordinal")[0].ids)


def _fresh(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _of_victor(sample: SampleExport) -> Selection:
    return choose(sample.channel_id, author_ids=(sample.victor,))
