"""`manage.py repair`: repair all tables on every node, or one bucket, in the foreground.

Recorded as a run, and in the audit log.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import threading
import time
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError
from django.db import connections

from chatstore.domain.buckets import format_bucket
from chatstore.domain.datetimes import format_datetime
from chatstore.domain.errors import BadInput
from chatstore.domain.runs import BUCKET_REPAIR, ENDED, RunState
from chatstore.domain.texts import from_json
from chatstore.management.inert import InertCommand
from chatstore.models import JobRun
from chatstore.operations.jobs.runs import work_on_run
from moderation.management.commands.purge import find_moderator
from moderation.operations.access.maintenance_acts import start_repair, stop_repair

POLL_SECONDS = 0.5


class Command(InertCommand):
    """Run a repair and print its progress; exits with 1 if it failed."""

    help = "Run a full repair of all tables on every node, or of one bucket of a channel."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--channel", type=int, help="channel id; requires --bucket")
        parser.add_argument("--bucket", type=int, help="number of one of its ten-day buckets")
        parser.add_argument("--as", dest="moderator", metavar="USER", help="acting account; default: 'command-line'")
        parser.add_argument("--json", action="store_true", help="print the run as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        channel_id, bucket = options["channel"], options["bucket"]
        if (channel_id is None) != (bucket is None):
            raise CommandError("--channel and --bucket must be used together.")
        job, subject = ("repair", "") if channel_id is None else (BUCKET_REPAIR, format_bucket(channel_id, bucket))
        try:
            actor = find_moderator(options["moderator"])
            run = start_repair(job, subject, actor=actor)
        except BadInput as error:
            raise CommandError(str(error)) from None
        finished = threading.Event()
        reporter = threading.Thread(target=self._report_progress, args=(run.pk, finished), daemon=True)
        if not options["json"]:
            reporter.start()
        try:
            self._work(run)
        except KeyboardInterrupt:
            stop_repair(run.pk, actor=actor)
        finally:
            finished.set()
            if reporter.is_alive():
                # It may still print a line, which must not follow the result.
                reporter.join()
        run.refresh_from_db()
        self.stdout.write(json.dumps(_describe(run)) if options["json"] else _format_run(run))
        if run.state != RunState.DONE:
            raise SystemExit(1)

    def _work(self, run: JobRun) -> None:
        """Wait until the run has ended; a worker may have claimed it first."""
        work_on_run(run.pk)
        run.refresh_from_db()
        while run.state not in ENDED:
            time.sleep(POLL_SECONDS)
            run.refresh_from_db()

    def _report_progress(self, run_id: int, finished: threading.Event) -> None:
        """Print a line for each part of the work as it starts."""
        last_line = ""
        try:
            while not finished.wait(POLL_SECONDS):
                progress = JobRun.objects.get(pk=run_id).progress
                line = _format_progress(progress) if progress else ""
                if line != last_line:
                    self.stderr.write(line)
                    last_line = line
        finally:
            connections.close_all()


def _describe(run: JobRun) -> dict[str, Any]:
    seconds = None
    if run.started_at is not None and run.ended_at is not None:
        seconds = round((run.ended_at - run.started_at).total_seconds(), 1)
    return {
        "run": run.pk,
        "job": run.job,
        "subject": run.subject,
        "state": str(run.state),
        "seconds": seconds,
        "result": run.result,
        "error": run.error,
    }


def _format_progress(progress: Mapping[str, Any]) -> str:
    return f"{progress['done']} of {progress['total']}: {from_json(progress['what'])}"


def _format_run(run: JobRun) -> str:
    summary = _describe(run)
    result = ", ".join(f"{name.replace('_', ' ')}: {_format_value(value)}" for name, value in run.result.items())
    return ". ".join(filter(None, (f"Run {run.pk}: {run.state} after {summary['seconds']} s", result, run.error)))


def _format_value(value: Any) -> str:
    found = from_json(value)
    return format_datetime(found) if isinstance(found, dt.datetime) else str(found)
