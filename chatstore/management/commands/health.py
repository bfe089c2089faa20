"""`manage.py health`: print the health of the cluster, or of a channel's buckets."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatstore.domain.errors import ChatstoreError
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.domain.texts import Size
from chatstore.management.inert import InertCommand
from chatstore.operations.health.health_report import Report, report_channel, report_cluster


class Command(InertCommand):
    help = "Print the health of the cluster or of one channel. Exits with 1 while a critical finding is open."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--channel", help="channel id; print its buckets instead of the cluster")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = self._read(options["channel"])
        except ChatstoreError as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps(report, indent=2))
        else:
            self.stdout.write("\n".join(format_channel(report) if options["channel"] else format_cluster(report)))
        if not report["ok"]:
            sys.exit(1)

    def _read(self, channel: str | None) -> Report:
        return report_cluster() if channel is None else report_channel(parse_snowflake(channel))


def format_cluster(report: Report) -> list[str]:
    """Return lines for the findings, then the repair clocks, the nodes and the worst partitions."""
    lines = [*_format_findings(report), *(f"missing    {reason}" for reason in report["errors"])]
    for clock in report["repair_clocks"] or ():
        last = clock["last_full_repair"] or "not within 30 days"
        left = f"{clock['hours_left']:.0f} of {clock['gc_grace_hours']:.0f} hours of gc_grace left"
        lines.append(f"repair     {clock['table']:15} {clock['state']:6} last {last}, {left}")
    if round_ := report["repair_round"]:
        end = "complete" if round_["complete"] else f"expected end: {round_['expected_end'] or 'unknown'}"
        lines.append(f"round      {round_['repaired']} of {round_['nodes']} nodes since {round_['began_at']}, {end}")
    for node in report["nodes"] or ():
        load = _format(node["load_bytes"], Size)
        waiting = _format(node["compactions_waiting"])
        down = f"down: {node['error']}" if node["error"] else "down"
        state = {True: "up", False: down, None: "unknown"}[node["up"]]
        lines.append(f"node       {node['address']:15} {state}, {load}, compactions waiting: {waiting}")
    for worst in report["worst_partitions"] or ():
        size, dead = _format(worst["bytes"], Size), _format(worst["tombstones"])
        lines.append(f"partition  {_plain(worst['name'])}, {worst['days']}: tombstones: {dead}, size: {size}")
    return lines


def format_channel(report: Report) -> list[str]:
    """Return a line for the channel, then one for each bucket that was ever written."""
    at_least = "at least " if report["uncounted_buckets"] else ""
    page = report["newest_page"].get("newest_page_us")
    cost = "unknown" if page is None else f"{page['value'] / 1000:.1f} ms ({page['source']}, {page['measured_at']})"
    lines = [
        f"{_plain(report['name'])}: {at_least}{report['messages']:,} messages, newest page {cost}",
        *_format_findings(report),
    ]
    for bucket in report["buckets"]:
        dead = "" if bucket["dead_percent"] is None else f" ({bucket['dead_percent']} % tombstones)"
        lines.append(
            f"{bucket['bucket']:6} {bucket['days']:32} {bucket['state']:10} messages: {_format(bucket['messages'])}, "
            f"tombstones: {_format(bucket['tombstones'])}{dead}, size: {_format(bucket['bytes'], Size)}"
        )
    return lines


def _format_findings(report: Report) -> list[str]:
    if not report["findings"]:
        return ["findings   none open"]
    return [f"{finding['severity']:10} {_plain(finding['summary'])}" for finding in report["findings"]]


def _format(value: int | None, formatter: Any = "{:,}".format) -> str:
    return "unknown" if value is None else str(formatter(value))


def _plain(text: str) -> str:
    """Replace characters that could control a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)
