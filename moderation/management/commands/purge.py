"""`manage.py purge`: deletes messages from the command line, after a preview."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import _ArgumentGroup
from collections.abc import Callable
from typing import Any, NoReturn

from django.contrib.auth import get_user_model
from django.core.management.base import CommandParser
from django.utils import timezone

from chatstore.domain.controls import show_hidden
from chatstore.domain.errors import BadInput, ChatstoreError
from chatstore.management.inert import InertCommand
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Content
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.access.audit import act_by_command
from moderation.operations.access.visibility import visible_channels
from moderation.operations.preview import purge_summary
from moderation.operations.preview.scan import scan_to_end
from moderation.operations.purging.approvals import request_approval
from moderation.operations.purging.lifecycle import confirm_purge, discard_preview, draft_purge
from moderation.operations.purging.limits import ApprovalNeeded
from moderation.operations.purging.worker import run_to_completion
from moderation.operations.selection.parsing import Description, Terms, find_channel, parse_selection
from moderation.operations.selection.summary import selection_summary
from moderation.operations.steps.totals import totals_of
from moderation.tasks import enqueue_next, enqueue_workers

DONE, FAILED, BAD_INPUT, NOTHING_MATCHED, NOT_FINISHED = 0, 1, 2, 3, 4
"""Exit codes. NOT_FINISHED: the command was interrupted, or the purge was paused or waits for approval."""

CONTINUES_IN_BACKGROUND = "Purge {} continues in the background. To stop it, cancel it on its page."

GROUPS = {"": "messages that match all of these", "any-": "and at least one of these", "not-": "and none of these"}
"""Prefixes of the options that select messages, with the titles of their groups."""


class Command(InertCommand):
    """Prints one JSON object with --json, otherwise text."""

    help = (
        "Delete messages: scan, preview, confirm, run. Conditions must all match; --any-…: at least one; --not-…: none."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Dates are UTC unless they have a zone; after is inclusive, before is exclusive."""
        where = parser.add_argument_group("where", "Without either: every channel in which the authors have posted.")
        where.add_argument("--channel", action="append", default=[], metavar="ID", help="or its name; may be repeated")
        where.add_argument("--guild", default="", metavar="ID", help="every channel of a guild")
        where.add_argument(
            "--not-channel",
            action="append",
            default=[],
            metavar="ID",
            help="channel to keep; may be repeated",
        )
        for prefix, title in GROUPS.items():
            _add_terms(parser.add_argument_group(title), prefix)
        parser.add_argument(
            "--with-pinned", action="store_true", help="delete pinned messages too; otherwise they are kept"
        )
        parser.add_argument(
            "--everything", action="store_true", help="all messages of one channel, including pinned ones"
        )
        parser.add_argument("--reason", required=True, metavar="TEXT")
        parser.add_argument("--as", dest="moderator", metavar="USER", help="acting account; default: 'command-line'")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        parser.add_argument("--detach", action="store_true", help="run in the background, by the workers")
        parser.add_argument("--json", action=argparse.BooleanOptionalAction, default=False)

    def handle(self, *args: Any, **options: Any) -> NoReturn:
        """Exit with 0 done, 1 failed or something left, 2 bad input, 3 nothing matched, 4 not finished."""
        try:
            moderator = find_moderator(options["moderator"])
            purge = draft_purge(moderator=moderator, selection=_selection(options, moderator))
            scan_to_end(purge.id)
            purge.refresh_from_db()
            if purge.state == PurgeState.NOTHING_MATCHED:
                self._finish(purge, options, NOTHING_MATCHED)
            if purge.state != PurgeState.READY:
                raise BadInput("The preview was discarded, or expired, before it was complete. Nothing was deleted.")
            self._show_preview(purge, options)
            purge = self._confirm(purge, moderator, options)
            if options["detach"]:
                enqueue_workers(purge.id)
                self._finish(purge, options, DONE)
            purge = run_in_foreground(purge.id, self.stderr.write, interrupted=CONTINUES_IN_BACKGROUND.format(purge.id))
            enqueue_next(purge.id)
        except BadInput as error:
            # The message may contain channel names.
            self.stderr.write(f"error: {show_hidden(str(error))}")
            sys.exit(BAD_INPUT)
        except ChatstoreError as error:
            self.stderr.write(f"error: {error}")
            sys.exit(FAILED)
        self._finish(purge, options, _exit_code(purge))

    def _show_preview(self, purge: Purge, options: dict[str, Any]) -> None:
        preview = purge_summary.preview_of(purge)
        if not options["json"]:
            self.stdout.write(f"{preview.count:,} messages: {selection_summary(purge)}")
            self.stdout.write(f"from {preview.oldest:%Y-%m-%d %H:%M} to {preview.newest:%Y-%m-%d %H:%M} UTC")
            self.stdout.write(purge_summary.describe_plan(preview))

    def _confirm(self, purge: Purge, moderator: User, options: dict[str, Any]) -> Purge:
        try:
            if not options["yes"]:
                self._prompt(purge, options)
            return self._confirm_or_request(purge, moderator, options["reason"])
        except (BadInput, KeyboardInterrupt):
            # Don't leave it in the list of purges awaiting confirmation.
            discard_preview(purge.id, moderator=moderator)
            raise

    def _confirm_or_request(self, purge: Purge, moderator: User, reason: str) -> Purge:
        """Confirm the purge; above a limit of the moderator, request approval and exit with `NOT_FINISHED`."""
        manifest_hash = bytes(purge.manifest_hash or b"")
        try:
            return confirm_purge(purge.id, moderator=moderator, reason=reason, manifest_hash=manifest_hash)
        except ApprovalNeeded as needed:
            approval = request_approval(purge.id, moderator=moderator, reason=reason, manifest_hash=manifest_hash)
            self.stderr.write(show_hidden(str(needed)))
            self.stderr.write(f"Purge {purge.id} waits for approval until {approval.expires_at:%Y-%m-%d %H:%M} UTC.")
            sys.exit(NOT_FINISHED)

    def _prompt(self, purge: Purge, options: dict[str, Any]) -> None:
        if not sys.stdin.isatty():
            raise BadInput("There is no terminal to confirm on. Use --yes to delete the messages that were found.")
        if options["everything"]:
            wanted = Channel.objects.get(id=purge.selection["channels"][0]).name
            answer = input(f"Type the channel name ({wanted}) to delete all of its messages: ")
        else:
            wanted = str(purge.manifest)
            answer = input(f"Type {wanted} to delete these messages: ")
        if answer.strip() != wanted:
            raise BadInput("Not confirmed. Nothing was deleted.")

    def _finish(self, purge: Purge, options: dict[str, Any], code: int) -> NoReturn:
        summary = purge_summary.purge_as_json(purge)
        if options["json"]:
            self.stdout.write(json.dumps(summary))
        elif code == NOTHING_MATCHED:
            self.stdout.write("Nothing matched. Nothing was deleted.")
        else:
            self.stdout.write(f"purge {purge.id} {purge.get_state_display()}: {purge_summary.format_totals(purge)}")
        sys.exit(code)


def run_in_foreground(purge_id: int, report: Callable[[str], object], *, interrupted: str) -> Purge:
    """Run a purge or its undo to completion. report: receives each reason for waiting.

    Ctrl-C leaves it to the workers, writes the line `interrupted` and exits with `NOT_FINISHED`.
    """
    try:
        return run_to_completion(purge_id, report=report)
    except KeyboardInterrupt:
        enqueue_workers(purge_id)
        report(interrupted)
        sys.exit(NOT_FINISHED)


def find_moderator(username: str | None) -> User:
    """Return the acting account; without a name the system account `command-line`, which cannot sign in."""
    users = get_user_model().objects
    if username is None:
        user, made = users.get_or_create(username="command-line", defaults={"is_superuser": True, "is_active": True})
        if made:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        return act_by_command(user)
    named = users.filter(username=username).first()
    if named is None:
        raise BadInput(f"There is no account called {username!r}.")
    return act_by_command(named)


def _add_terms(group: _ArgumentGroup, prefix: str) -> None:
    group.add_argument(
        f"--{prefix}author",
        action="append",
        default=[],
        metavar="ID",
        help="or name; may be repeated: matches any of them",
    )
    group.add_argument(
        f"--{prefix}after",
        default="",
        metavar="DATE",
        help="inclusive; ISO 8601 (UTC unless it has a zone), “11 March 2024, 14:30” or “20 minutes ago”",
    )
    group.add_argument(f"--{prefix}before", default="", metavar="DATE", help="exclusive")
    group.add_argument(
        f"--{prefix}text", default="", metavar="WORDS", help='whole words, case-insensitive; "a phrase" in quotes'
    )
    group.add_argument(f"--{prefix}text-any", default="", metavar="WORDS", help="at least one of the words")
    group.add_argument(
        f"--{prefix}similar", default="", metavar="TEXT", help="nearly the same text, or that of the linked message"
    )
    group.add_argument(
        f"--{prefix}account-days", default="", metavar="N", help="author's account was younger when they posted it"
    )
    group.add_argument(
        f"--{prefix}joined-minutes",
        default="",
        metavar="N",
        help="posted at most so long after the author last joined the server",
    )
    group.add_argument(
        f"--{prefix}first-seen-hours",
        default="",
        metavar="N",
        help="posted at most so long after the author's first message in any channel",
    )
    group.add_argument(f"--{prefix}regex", default="", metavar="RE2")
    group.add_argument(f"--{prefix}has", action="append", default=[], metavar="|".join(Content))
    group.add_argument(f"--{prefix}bots", action="store_true", help="written by bots and webhooks")
    group.add_argument(f"--{prefix}pinned", action="store_true", help="pinned messages")
    group.add_argument(f"--{prefix}reply-to", default="", metavar="ID")


def _terms(options: dict[str, Any], prefix: str) -> Terms:
    def given(name: str) -> Any:
        return options[f"{prefix}{name}".replace("-", "_")]

    return Terms(
        authors=",".join(given("author")),
        after=given("after"),
        before=given("before"),
        words=given("text"),
        any_words=given("text-any"),
        similar=given("similar"),
        account_days=given("account-days"),
        joined_minutes=given("joined-minutes"),
        first_seen_hours=given("first-seen-hours"),
        pattern=given("regex"),
        has=given("has"),
        bots=given("bots"),
        pinned=given("pinned"),
        reply_to=given("reply-to"),
    )


def _selection(options: dict[str, Any], moderator: User) -> Selection:
    channels = ",".join(options["channel"])
    described = Description(
        channels=channels,
        except_channels=",".join(options["not_channel"]),
        guild=options["guild"],
        all=_terms(options, ""),
        either=_terms(options, "any-"),
        none=_terms(options, "not-"),
        with_pinned=options["with_pinned"],
        everything=options["everything"],
        # Confirmed at the prompt before anything is deleted, or waived by --yes.
        channel_name=_name_of(channels, moderator) if options["everything"] else "",
    )
    return parse_selection(described, user=moderator, now=timezone.now())


def _name_of(channel: str, moderator: User) -> str:
    return find_channel(channel, visible_channels(moderator)).name if channel else ""


def _exit_code(purge: Purge) -> int:
    total = totals_of(purge)
    if purge.state == PurgeState.PAUSED:
        return NOT_FINISHED
    return FAILED if total.failed or total.held or total.left > total.later else DONE
