"""Data for the screenshots: a channel with a spam wave, a hostile one, and purges in each state."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import User
from django.core.management import call_command

from chatstore.operations.coordination.channel_lock import hold_channel
from chatstore.operations.gateway.timeline import open_timeline
from moderation.domain.filters import All, Author, Content, Has, Not
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.erasure.execution import erase_purge
from moderation.operations.erasure.requests import approve_erase, ask_erase
from moderation.operations.holds import Wanted, lift_hold, place_hold
from moderation.operations.preview.exclusions import untick_messages
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.claiming import job_of
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.moderation.rooms import choose, confirm, preview
from tests.pages.exports import Story, write_hostile, write_story
from tests.pages.serving import make_account
from tests.shots.health import Sick, arrange_sick_channel
from tests.shots.midway import arrange_midway
from tests.shots.upkeep import Upkeep, arrange_upkeep

HOLD_SECONDS = 1800
"""Long enough for all screenshots of a purge that waits for a channel locked by an import."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The objects that the list of pages refers to."""

    accounts: dict[str, tuple[str, str]]
    story: Story
    hostile: int
    ready: Purge
    done: Purge
    waiting: Purge
    nothing: Purge
    undone: Purge
    paused: Purge
    many: Purge
    partly: Purge
    erased: Purge
    erased_message: int
    spared: Purge
    held_user: int
    behind: Purge
    failed: Purge
    midway: Purge
    message: int
    removed: int
    removed_author: int
    back: int
    sick: Sick
    upkeep: Upkeep


def arrange_scene(folder: Path) -> Scene:
    """Import the channels and bring each purge to its state. Takes about 30 seconds."""
    until = dt.datetime.now(dt.UTC)
    accounts = {name: make_account(name) for name in ("mona", "lena", "otto", "ada", "tess")}
    mona, lena, otto, ada = (User.objects.get(username=accounts[name][0]) for name in ("mona", "lena", "otto", "ada"))
    story, emptied, held, taken_back = (
        # One second apart, because message ids are unique across channels.
        write_story(_fresh(folder / name), until=until - dt.timedelta(seconds=n), spam=1204)
        for n, name in enumerate("abcd")
    )
    hostile, _ = write_hostile(folder, until=until)
    call_command("import_discord", str(folder), verbosity=0)
    undone = run_purge(confirm(mona, preview(mona, _of_victor(taken_back))).pk, patience_seconds=60)
    ask_undo(undone.pk, moderator=mona, part=UndoPart())
    undone = run_purge(undone.pk, patience_seconds=60)
    partly = run_purge(confirm(mona, preview(mona, _of_some(taken_back, emptied))).pk, patience_seconds=60)
    ask_undo(partly.pk, moderator=mona, part=UndoPart(author_ids=(taken_back.people["Ines"],)))
    partly = run_purge(partly.pk, patience_seconds=60)
    erased = _erase(mona, lena, ada, taken_back, wished=partly)
    spared = _hold(mona, lena, taken_back)
    many = preview(mona, _with_links(story, emptied, taken_back))
    many = untick_messages(many.pk, _first_ids(many)[:2], moderator=mona, digest=bytes(many.digest or b""))
    paused = confirm(mona, preview(mona, _of_somebody(held)))
    held_up = confirm(mona, preview(mona, _of_victor(held)))
    hold_channel(held.channel_id, job="import:pictures", lease_seconds=HOLD_SECONDS)
    done = run_purge(confirm(mona, preview(mona, _of_victor(emptied))).pk, patience_seconds=60)
    failed = _fail_some(run_purge(confirm(mona, preview(mona, _of_somebody(emptied))).pk, patience_seconds=60))
    behind = confirm(mona, preview(mona, choose(emptied.channel_id, author_ids=(emptied.people["Wilma"],))))
    hold_channel(emptied.channel_id, job=job_of(done.pk))
    message = open_timeline(story.channel_id).messages[20].message_id
    return Scene(
        accounts=accounts,
        story=story,
        hostile=hostile,
        ready=preview(mona, _of_victor(story)),
        done=done,
        waiting=run_purge(held_up.pk, patience_seconds=0),
        undone=undone,
        paused=pause_purge(paused.pk, moderator=mona),
        many=many,
        behind=run_purge(behind.pk, patience_seconds=0),
        failed=failed,
        midway=arrange_midway(mona),
        partly=partly,
        erased=erased,
        erased_message=_chosen_by(erased),
        spared=spared,
        held_user=taken_back.people["Aiko"],
        nothing=preview(mona, choose(story.channel_id, author_ids=(5,))),
        message=message,
        removed=_chosen_by(done),
        removed_author=emptied.victor,
        back=_chosen_by(undone),
        sick=arrange_sick_channel(mona, User.objects.get(username=accounts["otto"][0])),
        upkeep=arrange_upkeep(otto, channel_id=story.channel_id, message_id=message),
    )


def _hold(mona: User, lena: User, story: Story) -> Purge:
    """Run a purge that is limited by a hold; also lift another hold."""
    held, free = story.people["Aiko"], story.people["Tomás"]
    purge = confirm(mona, preview(mona, choose(story.channel_id, author_ids=(held, free))))
    channel = str(story.channel_id)
    place_hold(Wanted(author=str(held), channel=channel), reason="Asked for by the police, case 71", actor=mona)
    lifted = place_hold(Wanted(author=str(free), channel=channel), reason="A report of 3 May is open", actor=mona)
    lift_hold(lifted.pk, actor=lena)
    return run_purge(purge.pk, patience_seconds=60)


def _erase(mona: User, lena: User, ada: User, story: Story, *, wished: Purge) -> Purge:
    """Erase the copies of a purge; for another purge only request it."""
    chosen = choose(story.channel_id, author_ids=(story.people["Jonas"],))
    purge = run_purge(confirm(mona, preview(mona, chosen)).pk, patience_seconds=60)
    wish = ask_erase(purge.pk, moderator=lena, reason="Personal data of a minor, request 71")
    approve_erase(purge.pk, wish.pk, moderator=ada)
    erase_purge(purge.pk)
    ask_erase(wished.pk, moderator=lena, reason="Addresses of members, request 72")
    return purge


def _fail_some(purge: Purge) -> Purge:
    """Mark messages of two buckets as failed: a dozen that came back, and all of one bucket."""
    steps = list(purge.steps.order_by("-count"))
    for step, ids, error in (
        (steps[0], unpack_ids(steps[0].ids)[:12], "12 reappeared three times"),
        (steps[1], unpack_ids(steps[1].ids), "the messages table has columns that this version does not copy: mood"),
    ):
        failed = {"failed": len(ids), "failed_ids": pack_ids(ids), "error": error}
        purge.steps.filter(ordinal=step.ordinal).update(deleted=step.count - len(ids), **failed)
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.DONE_WITH_FAILURES)
    return purge


def _chosen_by(purge: Purge) -> int:
    """Return the first message selected by a purge."""
    return min(first for first in purge.manifest_buckets.values_list("first_id", flat=True) if first is not None)


def _of_somebody(story: Story) -> Selection:
    return choose(story.channel_id, author_ids=(story.people["Ines"],))


def _of_some(one: Story, other: Story) -> Selection:
    authors = (one.people["Ines"], one.people["Wilma"], other.people["Priya"])
    return Selection(channel_ids=(one.channel_id, other.channel_id), where=Author(authors))


def _with_links(*stories: Story) -> Selection:
    where = All((Has(Content.LINK), Not(Author((stories[0].people["Ines"],)))))
    return Selection(channel_ids=tuple(story.channel_id for story in stories), where=where)


def _first_ids(purge: Purge) -> list[int]:
    return unpack_ids(purge.steps.order_by("ordinal")[0].ids)


def _fresh(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _of_victor(story: Story) -> Selection:
    return choose(story.channel_id, author_ids=(story.victor,))
