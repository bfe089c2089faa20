"""One purge of two channels, during which a hundred workers are killed and each server has an outage.

A Cassandra node is killed and later stopped, each time for a quarter of the kills. With two replicas nothing can be
decided then: the purge waits, shows the reason, and continues by itself. Valkey and Postgres are restarted, gracefully
and by SIGKILL, at random points. Another thread posts meanwhile, and a second moderator makes small and scattered
purges and undoes the latter; kills hit their workers too. Afterwards exactly the manifest is deleted, every count is
correct, pages answer, and an undo restores everything with every column.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import psycopg
from django.db import Error, connection

from chatstore.domain.errors import ChatstoreError
from chatstore.models.users import User
from devstack.problems import Problem
from moderation.domain.states import PurgeState
from moderation.management.demo_accounts import set_roles
from moderation.models import Purge, Step
from tests.conftest import ROLES
from tests.moderation.channels import confirm
from tests.moderation.faults.real_workers.separate_database import separate_database
from tests.moderation.faults.real_workers.workers import Workers
from tests.soak.checking import check_purged, check_undone
from tests.soak.kills import WorkerKiller, claims_recorded
from tests.soak.outages import (
    Outage,
    is_second_node_away,
    restart_postgres,
    restart_valkey,
    start_second_node,
    stop_second_node,
)
from tests.soak.scene import Scene, arrange_scene
from tests.soak.second_moderator import SecondModerator, arrange_second
from tests.soak.traffic import ChatTraffic

SIZE = 300_000
KILLS = 100
MAX_SECONDS = 20 * 60
MUST_WAIT_WITHIN_SECONDS = 60
MUST_END_WITHIN_SECONDS = 240
POLL_SECONDS = 0.01

MIN_KILL_DELAY_SECONDS = 0.4
MAX_KILL_DELAY_SECONDS = 4.0
"""Bounds of the delay before a kill, while the purge lags behind the kills."""

RESERVED_STEPS = 16
"""Steps reserved for the last kills: between two kills the workers may finish several."""


class SoakFailed(Exception):
    """Something expected did not occur, or something forbidden did."""


def main(arguments: Sequence[str]) -> int:
    """Run the soak; return 0 if every check passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("seed", nargs="?", default=secrets.token_hex(4))
    parser.add_argument("--size", type=int, default=SIZE, help="messages of the large purge's channels")
    parser.add_argument("--kills", type=int, default=KILLS)
    options = parser.parse_args(arguments)
    seed = options.seed
    print(f"SEED={seed} repeats this soak", flush=True)
    began = time.monotonic()
    log = partial(_log, began)
    signal.signal(signal.SIGALRM, _give_up)
    signal.signal(signal.SIGTERM, _stop)
    signal.alarm(MAX_SECONDS)
    with tempfile.TemporaryDirectory() as folder, separate_database("chatstore_soak_test"):
        workers = Workers(Path(folder))
        try:
            with claims_recorded():
                soak(Random(seed), workers, log, size=options.size, kills=options.kills)
        except (SoakFailed, AssertionError, ChatstoreError, Problem) as failed:
            print("\n".join(workers.log_text().splitlines()[-60:]), flush=True)
            # Print this last, where readers of the end of the output find it.
            log(f"FAILED with SEED={seed}: {type(failed).__name__}: {failed}")
            return 1
        finally:
            signal.alarm(0)
            workers.stop()
    log("all checks passed")
    return 0


def soak(random: Random, workers: Workers, log: Callable[[str], None], *, size: int, kills: int) -> None:
    mona, lena = make_moderator("mona"), make_moderator("lena")
    scene = arrange_scene(mona, random, size=size)
    second = arrange_second(lena)
    steps = Step.objects.filter(purge_id=scene.purge.id).count()
    log(f"{scene.purge.manifest:,} messages to delete in {steps} steps in {len(scene.channels)} channels")
    workers.start()
    traffic = ChatTraffic(scene.channels[0])
    try:
        confirm(mona, scene.purge)
        second.start()
        killer = WorkerKiller(workers, scene.purge.id, random, kills)
        kill_and_restart(scene, killer, second, plan_outages(random, scene.purge, kills, log), steps=steps, log=log)
        wait_for(scene.purge, workers, PurgeState.DONE)
        second.end(workers.restart_ended)
        log(
            f"beside it {second.small} purges of ten messages, {second.purged} scattered purges and {second.restored} "
            f"undos, none of which took more than {second.longest:.0f} s"
        )
        log("done; checking")
        check_purged(scene, traffic.stored, mona)
        check_undone(scene, traffic.stored, mona, wait=lambda: wait_for(scene.purge, workers, PurgeState.UNDONE))
    finally:
        second.stop()
        traffic.end()
    log(f"undone completely; {len(traffic.stored):,} messages posted meanwhile, {traffic.refused:,} refused")


def make_moderator(name: str) -> User:
    user = User.objects.create_user(f"{name}-{secrets.token_hex(4)}", is_staff=True)
    set_roles(user, ROLES["moderators"])
    return user


def plan_outages(random: Random, purge: Purge, kills: int, log: Callable[[str], None]) -> list[Outage]:
    """Plan two node outages of a quarter of the kills each, and the other restarts at random points."""
    first, second = (kills * random.randint(*percents) // 100 for percents in ((5, 15), (50, 65)))
    killed_first = random.random() < 0.5
    outages = [
        Outage(
            random.randrange(1, kills),
            f"{name} {'killed' if kill else 'ended'} and started",
            partial(restart, kill=kill),
        )
        for name, restart in (("Postgres", restart_postgres), ("Valkey", restart_valkey))
        for kill in (True, False)
    ]
    for start, kill in ((first, killed_first), (second, not killed_first)):
        description = f"a Cassandra node {'killed' if kill else 'stopped'}; the purge reports the missing replica"
        outages.append(Outage(start, description, partial(stop_node_and_wait, purge, kill=kill)))
        outages.append(Outage(start + kills // 4, "the node is back", start_second_node))
    return sorted(outages, key=lambda outage: outage.after_kills)


def stop_node_and_wait(purge: Purge, *, kill: bool) -> None:
    """Stop the node; return when the purge shows why it waits."""
    stop_second_node(kill=kill)
    _wait_until(
        lambda: _waits_for_replica(purge),
        seconds=MUST_WAIT_WITHIN_SECONDS,
        what="reported that it waits for the replica",
    )


def kill_and_restart(
    scene: Scene,
    killer: WorkerKiller,
    second: SecondModerator,
    outages: list[Outage],
    *,
    steps: int,
    log: Callable[[str], None],
) -> None:
    """Make all kills, spread so that the purge does not end before the last one."""
    ended = 0
    due = list(outages)
    while killer.count < killer.planned:
        second.check()
        while due and due[0].after_kills <= killer.count:
            outage = due.pop(0)
            outage.run()
            log(f"{killer.count} kills: {outage.description}")
        with tolerate_postgres_restart():
            left = count_open(scene.purge.id)
            if not left:
                raise SoakFailed(f"the purge ended after {killer.count} kills")
            ended += killer.workers.restart_ended()
            max_open_steps = RESERVED_STEPS + (steps - RESERVED_STEPS) * (1 - killer.count / killer.planned)
            if (
                try_kill(killer, max_open_steps=max_open_steps, node_away=is_second_node_away())
                and killer.count % 10 == 0
            ):
                log(f"{killer.count} kills, {steps - count_open(scene.purge.id)} of {steps} steps counted")
    for outage in due:
        outage.run()
        log(f"{killer.count} kills: {outage.description}")
    found = ", ".join(f"{count} {state}" for state, count in killer.left_in.most_common())
    log(f"steps left behind by killed workers: {found}; {ended} workers exited by themselves and were restarted")
    log(f"{killer.beside} kills hit the second moderator's purges, {killer.in_groups} of them groups of steps")


def try_kill(killer: WorkerKiller, *, max_open_steps: float, node_away: bool) -> bool:
    """Kill a worker at a random point; return whether it was executing a step.

    max_open_steps: while more steps are open, the purge lags behind the kills and may continue for a while.
    """
    if node_away:
        return killer.kill_at_claim(seconds=1)
    if not killer.list_busy():
        time.sleep(POLL_SECONDS)
        return False
    end = time.monotonic() + killer.random.uniform(0, MAX_KILL_DELAY_SECONDS)
    time.sleep(killer.random.uniform(0, MIN_KILL_DELAY_SECONDS))
    while time.monotonic() < end and count_open(killer.purge_id) > max_open_steps:
        time.sleep(POLL_SECONDS)
    return killer.kill_one()


def wait_for(purge: Purge, workers: Workers, state: PurgeState) -> None:
    def ended() -> bool:
        with tolerate_postgres_restart():
            workers.restart_ended()
            purge.refresh_from_db()
        return purge.state == state

    _wait_until(ended, seconds=MUST_END_WITHIN_SECONDS, what=f"reached the state {state}")


def count_open(purge_id: int) -> int:
    return Step.objects.filter(purge_id=purge_id).open().count()


@contextmanager
def tolerate_postgres_restart() -> Iterator[None]:
    """Ignore Postgres errors during its restart; the caller polls again."""
    try:
        yield
    except (Error, psycopg.Error):
        connection.close()
        time.sleep(0.1)


def _waits_for_replica(purge: Purge) -> bool:
    with tolerate_postgres_restart():
        purge.refresh_from_db()
    return purge.state == PurgeState.WAITING and "replica" in purge.wait_reason


def _wait_until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SoakFailed(f"the purge had not {what} after {seconds:.0f} s")
        time.sleep(0.05)


def _log(began: float, line: str) -> None:
    print(f"{time.monotonic() - began:5.0f} s  {line}", flush=True)


def _give_up(_number: int, _frame: object) -> None:
    raise SoakFailed(f"the soak did not end within {MAX_SECONDS // 60} minutes")


def _stop(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
