"""Fills a guild of 50,000 channels with 10,000,000 messages of twenty accounts, purges them all, and undoes the purge.

The product runs as in `make run`, without the maintenance worker: gunicorn, workers, beat. A moderator composes,
confirms and undoes the purge by the web's forms, and the page is polled as htmx does. For each phase the seconds and
the processor time per step are printed, the largest process, the oldest transaction of Postgres, and the seconds of
every kind of request. The exit code is 1 if a limit is missed; what was deleted and restored is checked in any case.

Run it as `python -m devstack exec bench .venv/bin/python -m tests.scale.large_purge`. A guild that was filled is used
again, and a purge that was interrupted is continued (`--phases purge undo`).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from django.contrib.auth.hashers import make_password

from chatstore.celery import app
from chatstore.local.layout import Stack, read_stack
from chatstore.models.users import User
from devstack import cassandra, postgres, web
from devstack.processes import end_processes, find_process, start_process
from devstack.running import read_base_url
from devstack.servers import Server, wait_until_ready
from moderation.domain.states import ACTIVE_PURGES, PurgeState, UndoStepState
from moderation.management.demo_accounts import set_roles
from moderation.models import Purge
from moderation.operations.steps.open_steps import open_steps
from tests.bench.channels import settle
from tests.conftest import ROLES
from tests.scale.large_purge.browser import Browser
from tests.scale.large_purge.checking import CheckFailed, check_preview, check_purged, check_undone
from tests.scale.large_purge.filling import LargeGuild, fill_guild, find_filled
from tests.scale.large_purge.sampling import Costs, Sampler

CHANNELS, MESSAGES = 50_000, 10_000_000
PHASES = ("preview", "purge", "undo")

CLIENTS = ("web", "worker", "previews", "beat")
"""The processes of the product that run, also their names in Postgres."""

WORKERS = ("worker", "previews")

MAX_TRANSACTION_SECONDS = 1.0
MAX_REQUEST_SECONDS = 0.3
MAX_MB = {"web": 200, "worker": 400, "previews": 400}

PAGES = 5
"""Requests of each page between two phases."""


def main(arguments: Sequence[str]) -> int:
    """Fill if needed, run the phases, print and write what they cost, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.scale.large_purge", description=__doc__)
    parser.add_argument("--channels", type=int, default=CHANNELS)
    parser.add_argument("--messages", type=int, default=MESSAGES, help="of all channels")
    parser.add_argument("--phases", nargs="*", choices=PHASES, default=PHASES, help="of the guild's newest purge")
    parser.add_argument("--out", type=Path, default=Path("large-purge.json"))
    options = parser.parse_args(arguments)
    logging.getLogger("chatstore.store.nodetool").setLevel(logging.WARNING)
    report: dict[str, Any] = {"channels": options.channels, "messages": options.messages, "phases": {}}
    began = time.monotonic()
    guild = find_filled(channels=options.channels, messages=options.messages)
    if guild is None:
        guild = fill_guild(channels=options.channels, messages=options.messages, report=_print)
        settle()
        report["filled_seconds"] = round(time.monotonic() - began, 1)
        _print(f"filled after {report['filled_seconds']:.0f} s")
    missed = 0
    if options.phases:
        try:
            missed = run_phases(guild, options.phases, report["phases"])
        except CheckFailed as failed:
            _print(f"FAILED: {failed}")
            missed = 1
        finally:
            options.out.write_text(json.dumps(report, indent=1) + "\n")
            _print(f"written to {options.out} after {time.monotonic() - began:.0f} s")
    return 1 if missed else 0


def run_phases(guild: LargeGuild, phases: Sequence[str], report: dict[str, Any]) -> int:
    """Run the phases; return the number of limits that were missed. Raises `CheckFailed`."""
    stack = read_stack(os.environ)
    missed = 0
    with product_running(stack) as processes:
        sampler = Sampler(processes, clients=list(CLIENTS))
        try:
            browser = sign_in(stack)
            for name in phases:
                browser.seconds.clear()
                sampler.take()
                began = time.monotonic()
                purge, steps = _PHASES[name](browser, guild)
                seconds = time.monotonic() - began
                costs = sampler.take()
                read_pages(browser, purge)
                pages = sampler.take()
                costs = replace(costs, peak_mb=pages.peak_mb)
                report[name] = _describe(seconds, steps, costs, browser.seconds)
                missed += print_phase(name, report[name])
                _CHECKS[name](guild, purge)
                _print(f"{name}: checked")
        finally:
            sampler.end()
    return missed


@contextmanager
def product_running(stack: Stack) -> Iterator[dict[str, psutil.Process]]:
    """Run the product's processes; yield them and the servers by name."""
    # Those of an interrupted run.
    end_processes(stack, CLIENTS, seconds=web.WEB_END_SECONDS)
    launches = [launch for launch in web.list_launches(stack) if launch.name in CLIENTS]
    # Ours are the settings of the tests, without the monitor.
    ours = ("DJANGO_SETTINGS_MODULE", "MONITOR_INTERVAL_SECONDS")
    try:
        for launch in launches:
            environ = {key: value for key, value in launch.environ.items() if key not in ours}
            start_process(stack, replace(launch, environ=environ | {"PGAPPNAME": launch.name}))
        wait_until_ready(stack, Server("web", "127.0.0.1", stack.ports.web, lambda: launches[0]))
        names = [*CLIENTS, postgres.NAME, *cassandra.NAMES]
        while len(app.control.ping()) < len(WORKERS):
            time.sleep(0.1)
        yield {name: process for name in names if (process := find_process(stack, name))}
    finally:
        end_processes(stack, CLIENTS, seconds=web.WEB_END_SECONDS)


def sign_in(stack: Stack) -> Browser:
    """Sign in as a new moderator."""
    password = secrets.token_urlsafe(12)
    user = User.objects.create_user(f"large-{secrets.token_hex(4)}", is_staff=True)
    # The product does not know the fast hash of the tests.
    User.objects.filter(pk=user.pk).update(password=make_password(password, hasher="pbkdf2_sha256"))
    set_roles(user, ROLES["moderators"])
    return Browser(read_base_url(stack), username=user.username, password=password)


def preview(browser: Browser, guild: LargeGuild) -> tuple[Purge, int]:
    """Compose a purge of the accounts, and wait for its preview."""
    browser.get("/delete/", name="form")
    fields = {"guild": str(guild.id), "authors": ", ".join(map(str, guild.accounts))}
    path = browser.post("/delete/", fields, name="compose")
    browser.watch(path, name="scanning")
    purge = _newest_purge(guild)
    return purge, purge.steps.count()


def purge(browser: Browser, guild: LargeGuild) -> tuple[Purge, int]:
    """Confirm the preview, unless it was, and wait for the end of the purge."""
    found = _newest_purge(guild)
    steps = open_steps(found).count()
    path = f"/purges/{found.pk}/"
    if found.state == PurgeState.READY:
        fields = {"manifest_hash": browser.get(path, name="preview page").manifest_hash, "reason": "A large raid"}
        path = browser.post(f"{path}confirm/", fields, name="confirm")
    browser.watch(path, name="running")
    found.refresh_from_db()
    return found, steps


def undo(browser: Browser, guild: LargeGuild) -> tuple[Purge, int]:
    """Request the undo, unless it was, and wait for its end."""
    found = _newest_purge(guild)
    path = f"/purges/{found.pk}/"
    if found.state not in ACTIVE_PURGES:
        browser.get(path, name="done page")
        path = browser.post(f"{path}undo/", {"reason": "test"}, name="request the undo")
    counted = found.undo_steps.filter(state=UndoStepState.COUNTED).count()
    browser.watch(path, name="undoing")
    found.refresh_from_db()
    return found, found.undo_steps.count() - counted


_PHASES: dict[str, Callable[[Browser, LargeGuild], tuple[Purge, int]]] = {
    "preview": preview,
    "purge": purge,
    "undo": undo,
}
_CHECKS: dict[str, Callable[[LargeGuild, Purge], None]] = {
    "preview": check_preview,
    "purge": check_purged,
    "undo": check_undone,
}


def read_pages(browser: Browser, purge: Purge) -> None:
    """Read the pages of a purge whose phase has ended."""
    for _ in range(PAGES):
        browser.get(f"/purges/{purge.pk}/", name=f"{purge.state} page")
        browser.get(f"/purges/{purge.pk}/messages/", name=f"{purge.state} messages")
        browser.get("/purges/", name="list of purges")


def _newest_purge(guild: LargeGuild) -> Purge:
    return Purge.objects.filter(guild_id=guild.id, is_rewrite=False).latest("id")


def _describe(seconds: float, steps: int, costs: Costs, requests: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    cpu = {name: round(used, 1) for name, used in costs.cpu_seconds.items()}
    return {
        "seconds": round(seconds, 1),
        "steps": steps,
        "ms_per_step": round(seconds / max(1, steps) * 1_000, 2),
        "cpu_seconds": cpu,
        "cpu_ms_per_step": {name: round(used / max(1, steps) * 1_000, 2) for name, used in cpu.items()},
        "peak_mb": {name: round(costs.peak_mb[name]) for name in (*CLIENTS, postgres.NAME)},
        "longest_transaction": round(costs.longest, 2),
        "transactions": [[round(age, 2), client, query] for age, client, query in costs.transactions],
        "requests": {
            name: {"count": len(taken), "median": round(statistics.median(taken), 3), "max": round(max(taken), 3)}
            for name, taken in sorted(requests.items())
        },
    }


def print_phase(name: str, phase: Mapping[str, Any]) -> int:
    """Print a phase; return the number of limits that it missed."""
    missed = 0

    def limited(text: str, value: float, limit: float) -> str:
        nonlocal missed
        missed += value > limit
        return f"{text} MISSED: at most {limit:g}" if value > limit else text

    steps = f"{phase['steps']:,} steps, {phase['ms_per_step']:.2f} ms each"
    _print(f"{name}: {phase['seconds']:.0f} s, {steps}")
    cpu = ", ".join(f"{each} {ms:.2f}" for each, ms in phase["cpu_ms_per_step"].items())
    _print(f"  processor ms per step: {cpu}")
    peaks = (limited(f"{each} {mb}", mb, MAX_MB.get(each, float("inf"))) for each, mb in phase["peak_mb"].items())
    _print(f"  largest process, MB: {', '.join(peaks)}")
    longest = phase["longest_transaction"]
    _print(f"  {limited(f'longest transaction: {longest:.2f} s', longest, MAX_TRANSACTION_SECONDS)}")
    for age, client, query in phase["transactions"]:
        _print(f"    {age:.2f} s {client}: {query}")
    for request, taken in phase["requests"].items():
        text = (
            f"  {request:28}{taken['count']:6} × {taken['median'] * 1_000:7.0f} ms, at most {taken['max'] * 1_000:.0f}"
        )
        _print(limited(text, taken["median"], MAX_REQUEST_SECONDS))
    return missed


def _print(line: str) -> None:
    print(line, flush=True)
