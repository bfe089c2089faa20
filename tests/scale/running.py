"""Fills the database `chatstore_scale`, then measures the queries of background work and of pages.

Prints a line for each, and the slowest statement of those that miss a limit. The exit code is 1 if any does.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Sequence

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from chatstore.local.layout import read_stack
from devstack.postgres import prepare_database
from devstack.preparing import COLLECT_STATIC, run_steps
from devstack.servers import is_external
from tests.scale.filling import DATABASE, fill_database, filled_with, sizes_of
from tests.scale.measuring import MAX_MS, Measured, measure
from tests.scale.operations import LIMITS_MS, background_operations, pages
from tests.table_owner import as_table_owner


def main(arguments: Sequence[str]) -> int:
    """Fill the database if needed, measure, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.add_argument("--factor", type=float, default=1.0, help="part of a year's rows")
    parser.add_argument("--only", nargs="+", default=[], help="measure what has one of these words in its name")
    parser.add_argument("--verbose", action="store_true", help="print every statement")
    options = parser.parse_args(arguments)
    if is_external("DATABASE_URL"):
        parser.error("DATABASE_URL is set: only a database of the test servers is filled.")
    # Pages that read messages answer 503 while only Postgres is up.
    logging.disable(logging.ERROR)
    _use_database()
    sizes = sizes_of(options.factor)
    with as_table_owner():
        call_command("migrate", verbosity=0)
        if filled_with() != str(sizes):
            began = time.monotonic()
            fill_database(sizes, report=lambda line: print(line, flush=True))
            print(f"filled in {time.monotonic() - began:.0f} s: {sizes}", flush=True)
    missed = 0
    print(f"{'':52}{'ms':>8}{'queries':>9}{'rows':>9}  read as a whole")
    for name, operation in (*background_operations(), *pages()):
        if not options.only or any(word in name for word in options.only):
            measured = measure(operation, max_ms=LIMITS_MS.get(name, MAX_MS))
            missed += not measured.is_within_limits
            _print_measured(name, measured, verbose=options.verbose)
    print(f"{missed} over the limits: {MAX_MS:.0f} ms or their own, and no growing table read as a whole")
    return 1 if missed else 0


def _use_database() -> None:
    stack = read_stack(os.environ)
    prepare_database(stack, name=DATABASE)
    run_steps(stack, [COLLECT_STATIC], report=lambda _: None)
    connection.settings_dict["NAME"] = DATABASE
    settings.ALLOWED_HOSTS = ["testserver"]


def _print_measured(name: str, measured: Measured, *, verbose: bool) -> None:
    mark = " " if measured.is_within_limits else "!"
    print(
        f"{mark} {name:50}{measured.ms:8.1f}{len(measured.statements):9}{measured.rows:9}  "
        f"{', '.join(measured.scanned)}{measured.error and f' ERROR {measured.error}'}",
        flush=True,
    )
    slowest = sorted(measured.statements, key=lambda one: -one.ms)
    for statement in slowest if verbose else slowest[:1] if mark == "!" else []:
        print(f"    {statement.ms:8.1f} ms {', '.join(statement.scanned)}  {statement.sql}"[: None if verbose else 400])
