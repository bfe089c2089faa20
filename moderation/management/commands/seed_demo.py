"""`manage.py seed_demo`: write the demo data into an empty database, and a note if the demo accounts exist."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatstore.demo.plan import DemoChannel
from chatstore.domain.errors import ChatstoreError
from chatstore.management.inert import InertCommand
from chatstore.models import Channel
from chatstore.operations.health.probes import request_probes
from chatstore.operations.importing.seed_demo import NOTHING_WRITTEN, seed_demo
from moderation.management.demo_note import write_demo_note

DEFAULT_SEED = 1


class Command(InertCommand):
    help = "Write demo guilds, channels, messages, reports and a note into an empty database."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="random seed (default: 1)")
        parser.add_argument("--until", help="end of the data, ISO 8601, UTC unless it has an offset (default: now)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        until = _parse_until(options["until"]) if options["until"] else dt.datetime.now(dt.UTC)
        try:
            summary = seed_demo(seed=options["seed"], until=until, on_channel=self._show(options["verbosity"]))
            if summary != NOTHING_WRITTEN:
                write_demo_note()
                # The probe of the night ran before the channels were there, or while they were filled.
                request_probes(Channel.objects.values_list("pk", flat=True))
        except ChatstoreError as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps(asdict(summary), indent=2))
        elif summary == NOTHING_WRITTEN:
            self.stdout.write("The demo data already exists; nothing was written.")
        else:
            self.stdout.write(
                f"{summary.messages:,} messages in {summary.channels} channels of {summary.guilds} guilds, "
                f"{summary.users} users, in {summary.seconds:.0f} s"
            )

    def _show(self, verbosity: int) -> Any:
        def report(channel: DemoChannel, count: int) -> None:
            if verbosity > 1:
                self.stderr.write(f"#{channel.name}: {count:,} messages")

        return report


def _parse_until(text: str) -> dt.datetime:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"--until: {text!r} is not an ISO 8601 date") from None
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)
