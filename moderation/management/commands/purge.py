"""`manage.py purge`: removes messages of a channel from the command line, shown exactly before."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from typing import Any, NoReturn

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandParser

from chatstore.domain.errors import BadInput, ChatstoreError
from chatstore.domain.snowflakes import first_id_at, parse_snowflake, unix_ms
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations import purge_view
from moderation.operations.purges import confirm_purge, draft_purge
from moderation.operations.running import run_purge
from moderation.operations.scanning import scan_purge
from moderation.operations.sums import sum_of
from moderation.tasks import run_purge as run_purge_task

DONE, FAILED, BAD_INPUT, NOTHING_MATCHED = 0, 1, 2, 3
"""Exit codes."""


class Command(BaseCommand):
    """Prints one JSON object with --json, sentences without."""

    help = "Remove messages of a channel: scan, show, confirm, run."

    def add_arguments(self, parser: CommandParser) -> None:
        """Dates are UTC unless a zone is given; after is inclusive, before exclusive."""
        parser.add_argument("--channel", required=True, metavar="ID")
        parser.add_argument("--author", action="append", default=[], metavar="ID", help="may be given several times")
        parser.add_argument("--after", metavar="DATE", help="inclusive; ISO 8601, UTC unless a zone is given")
        parser.add_argument("--before", metavar="DATE", help="exclusive; ISO 8601, UTC unless a zone is given")
        parser.add_argument("--everything", action="store_true", help="the whole channel")
        parser.add_argument("--reason", required=True, metavar="TEXT")
        parser.add_argument(
            "--as", dest="moderator", metavar="USER", help="who does it; default: the account 'command-line'"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument("--detach", action="store_true", help="leave the work to the workers")
        parser.add_argument("--json", action=argparse.BooleanOptionalAction, default=False)

    def handle(self, *args: Any, **options: Any) -> NoReturn:
        """Exits with 0 done, 1 failed or something left, 2 bad input, 3 nothing matched."""
        try:
            moderator = find_moderator(options["moderator"])
            purge = draft_purge(moderator=moderator, selection=_selection(options))
            scan_purge(purge.id)
            purge.refresh_from_db()
            if purge.state == PurgeState.NOTHING_MATCHED:
                self._finish(purge, options, NOTHING_MATCHED)
            self._show_preview(purge, options)
            if not options["yes"]:
                self._ask(purge)
            purge = confirm_purge(
                purge.id, moderator=moderator, reason=options["reason"], digest=bytes(purge.digest or b"")
            )
            if options["detach"]:
                run_purge_task.delay(purge.id)
                self._finish(purge, options, DONE)
            purge = run_purge(purge.id)
        except BadInput as error:
            self.stderr.write(f"error: {error}")
            sys.exit(BAD_INPUT)
        except ChatstoreError as error:
            self.stderr.write(f"error: {error}")
            sys.exit(FAILED)
        self._finish(purge, options, _exit_code(purge))

    def _show_preview(self, purge: Purge, options: dict[str, Any]) -> None:
        preview = purge_view.preview_of(purge)
        if not options["json"]:
            self.stdout.write(f"{preview.count:,} messages: {purge_view.sentence_of(purge)}")
            self.stdout.write(f"from {preview.oldest:%Y-%m-%d %H:%M} to {preview.newest:%Y-%m-%d %H:%M} UTC")
            self.stdout.write(purge_view.say_plan(preview))

    def _ask(self, purge: Purge) -> None:
        if not sys.stdin.isatty():
            raise BadInput("There is no terminal to ask on: say --yes to remove what was found.")
        answer = input(f"Type {purge.manifest} to remove these messages: ")
        if answer.strip() != str(purge.manifest):
            raise BadInput("Not confirmed; nothing was removed.")

    def _finish(self, purge: Purge, options: dict[str, Any], code: int) -> NoReturn:
        summary = purge_view.summary_of(purge)
        if options["json"]:
            self.stdout.write(json.dumps(summary))
        elif code == NOTHING_MATCHED:
            self.stdout.write("Nothing matched; nothing was removed.")
        else:
            self.stdout.write(f"purge {purge.id} {purge.get_state_display()}: {purge_view.say_sum(purge)}")
        sys.exit(code)


def find_moderator(username: str | None) -> User:
    """The account that acts; without a name the system's own `command-line`, which cannot sign in."""
    users = get_user_model().objects
    if username is None:
        user, made = users.get_or_create(username="command-line", defaults={"is_superuser": True, "is_active": True})
        if made:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        return user
    named = users.filter(username=username).first()
    if named is None:
        raise BadInput(f"There is no account called {username!r}.")
    return named


def _selection(options: dict[str, Any]) -> Selection:
    return Selection(
        channel_id=parse_snowflake(options["channel"]),
        author_ids=tuple(parse_snowflake(author) for author in options["author"]),
        after_id=_first_id_of(options["after"], "--after"),
        before_id=_first_id_of(options["before"], "--before"),
        everything=options["everything"],
    )


def _first_id_of(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{option} {text!r} is no date: write it like 2024-05-01 or 2024-05-01T18:30+02:00.") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    if option == "--after" and moment > dt.datetime.now(dt.UTC):
        raise BadInput(f"{option} {text} lies in the future.")
    return first_id_at(unix_ms(moment))


def _exit_code(purge: Purge) -> int:
    total = sum_of(purge)
    return FAILED if total.failed or total.held or total.left > total.later else DONE
