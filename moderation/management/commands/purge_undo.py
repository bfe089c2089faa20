"""`manage.py purge_undo ID`: restores the messages that a purge deleted, all or some of them."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatstore.domain.errors import BadInput, ChatstoreError
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.management.inert import InertCommand
from moderation.management.commands.purge import BAD_INPUT, DONE, FAILED, find_moderator, run_in_foreground
from moderation.management.commands.purge_show import find_purge
from moderation.models import Purge, Undo
from moderation.operations.purging.wait_reasons import format_wait, wait_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from moderation.tasks import enqueue_next, enqueue_workers


class Command(InertCommand):
    help = "Restore deleted messages of a purge, for 30 days: all, or by author, channel or message."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("purge", metavar="ID")
        for part in ("author", "channel", "message"):
            parser.add_argument(f"--{part}", action="append", default=[], metavar="ID", help="may be repeated")
        parser.add_argument("--reason", required=True, metavar="TEXT")
        parser.add_argument("--as", dest="moderator", metavar="USER", help="acting account; default: 'command-line'")
        parser.add_argument("--detach", action="store_true", help="run in the background, by the workers")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit with 0 done, 1 failed, 2 bad input, 4 not finished."""
        purge = find_purge(options["purge"])
        try:
            undo = request_undo(
                purge.id,
                moderator=find_moderator(options["moderator"]),
                part=_part_of(options),
                reason=options["reason"],
            )
            if options["detach"]:
                enqueue_workers(purge.id)
            else:
                interrupted = f"The undo of purge {purge.id} continues in the background."
                purge = run_in_foreground(purge.id, self.stderr.write, interrupted=interrupted)
                enqueue_next(purge.id)
        except BadInput as error:
            raise CommandError(f"{error}{_format_blocker(purge)}", returncode=BAD_INPUT) from None
        except ChatstoreError as error:
            raise CommandError(str(error), returncode=FAILED) from None
        purge.refresh_from_db()
        self._print_result(undo, state=purge.state, as_json=options["json"])
        if not options["detach"]:
            sys.exit(FAILED if undo_totals_of(undo).failed else DONE)

    def _print_result(self, undo: Undo, *, state: str, as_json: bool) -> None:
        counts = undo_totals_of(undo).as_json()
        if as_json:
            self.stdout.write(json.dumps({"id": str(undo.pk), "purge": str(undo.purge_id), "state": state, **counts}))
            return
        text = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
        self.stdout.write(f"purge {undo.purge_id} {state.replace('_', ' ')}: {text}")


def _format_blocker(purge: Purge) -> str:
    """Return what prevents a purge from completing, after a refusal; "" if unknown."""
    purge.refresh_from_db()
    line = format_wait(wait_of(None, purge))
    return f" {line}." if line else ""


def _part_of(options: dict[str, Any]) -> UndoPart:
    author, channel, message = (
        tuple(parse_snowflake(text) for text in options[part]) for part in ("author", "channel", "message")
    )
    return UndoPart(author_ids=author, channel_ids=channel, message_ids=message)
