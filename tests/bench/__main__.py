"""`python -m tests.bench --size 1000000 --out bench.json`, on servers of its own."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import django
from django.db import close_old_connections

from tests.bench.report import PARTS, Report, run_parts, select_parts

WARM_UP = 200_000
"""Messages of the uncounted warm-up round. A smaller bench warms up with its own size."""


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--runs", type=int, default=3, help="alternating runs of each side")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace) -> int:
    """Measure the selected parts and return the exit code."""
    # Models can be imported only after django.setup().
    from moderation.management.commands.purge import find_moderator  # noqa: PLC0415
    from tests.bench.bench_stack import bench_stack  # noqa: PLC0415
    from tests.bench.channel_pool import ChannelPool  # noqa: PLC0415
    from tests.bench.conditions import describe_conditions  # noqa: PLC0415
    from tests.bench.parts import list_parts, warm_up  # noqa: PLC0415

    # A log line per flush would bury the figures.
    logging.getLogger("chatstore.store.nodetool").setLevel(logging.WARNING)
    moderator = find_moderator(None)
    parts = select_parts(list_parts(ChannelPool(moderator, options.size), runs=options.runs), options.only)
    head = {"size": options.size, "runs": options.runs, "conditions": describe_conditions()}
    report = Report(options.out, head=head, parts=[part.name for part in parts])
    report.write()
    with bench_stack():
        began = time.monotonic()
        warm_up(ChannelPool(moderator, min(WARM_UP, options.size)))
        report.seconds["warm_up"] = round(time.monotonic() - began, 1)
        print(f"warmed up after {report.seconds['warm_up']:.0f} s", flush=True)
        # Close lost Postgres connections, so that the next part opens a new one.
        return run_parts(parts, report, recover=close_old_connections)


def main() -> int:
    """Run the benchmarks, print each figure beside its bound, write them as JSON and return the exit code."""
    began = time.monotonic()
    options = read_options(sys.argv[1:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    code = measure(options)
    print(f"written to {options.out} after {time.monotonic() - began:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
