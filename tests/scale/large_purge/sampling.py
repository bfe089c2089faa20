"""Memory and processor time of processes, and the age of Postgres's transactions, while a phase runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from django.db import connection

from tests.processes import family_of, processor_seconds_of

SAMPLE_SECONDS = 0.05
MEMORY_EVERY = 10
"""Seconds between two reads of the transactions in progress, and how many of these before memory is read again."""

SLOW_SECONDS = 0.3
"""Statements of transactions of this age are listed."""

# A pid is used again, so a transaction is named by its beginning too.
_TRANSACTIONS = """
SELECT pid, xact_start, application_name, extract(epoch FROM clock_timestamp() - xact_start)::float8,
    coalesce(wait_event_type, ''), left(regexp_replace(query, '\\s+', ' ', 'g'), 160)
FROM pg_stat_activity
WHERE datname = current_database() AND application_name = ANY(%s) AND xact_start IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of a phase. cpu_seconds, peak_mb: by process; the peak of the largest member of a family, since its start.

    transactions: the oldest that were seen: seconds, process, and the statement seen last.
    """

    cpu_seconds: Mapping[str, float]
    peak_mb: Mapping[str, float]
    longest: float
    transactions: list[tuple[float, str, str]]


class Sampler:
    """Samples processes, each with its children. clients: names of those whose transactions are sampled."""

    def __init__(self, processes: Mapping[str, psutil.Process], *, clients: list[str]) -> None:
        self._processes = processes
        self._clients = clients
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._oldest: dict[tuple[Any, ...], tuple[float, str, str]] = {}
        self._peaks: dict[str, float] = {}
        self._cpu = self._read_cpu()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop sampling."""
        self._stop.set()
        self._thread.join()

    def take(self) -> Costs:
        """Return the costs since the last call."""
        self._read_memory()
        cpu, before = self._read_cpu(), self._cpu
        self._cpu = cpu
        with self._lock:
            oldest, self._oldest = sorted(self._oldest.values(), reverse=True), {}
        return Costs(
            {name: cpu[name] - before[name] for name in cpu},
            dict(self._peaks),
            oldest[0][0] if oldest else 0.0,
            [one for one in oldest[:10] if one[0] >= SLOW_SECONDS],
        )

    def _sample(self) -> None:
        number = 0
        try:
            while not self._stop.wait(SAMPLE_SECONDS):
                with connection.cursor() as cursor:
                    cursor.execute(_TRANSACTIONS, [self._clients])
                    rows = cursor.fetchall()
                with self._lock:
                    for pid, start, client, seconds, waits, query in rows:
                        self._oldest[pid, start] = (seconds, client, f"{waits and f'({waits}) '}{query}")
                number += 1
                if number % MEMORY_EVERY == 0:
                    self._read_memory()
        finally:
            connection.close()

    def _read_memory(self) -> None:
        for name, process in self._processes.items():
            peaks = [_peak_mb(member.pid) for member in family_of(process)]
            self._peaks[name] = max([self._peaks.get(name, 0.0), *peaks])

    def _read_cpu(self) -> dict[str, float]:
        return {name: processor_seconds_of(process) for name, process in self._processes.items()}


def _peak_mb(pid: int) -> float:
    """Return the largest resident size that the process has had, in MB of 10⁶ bytes."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1_024 / 1e6
    return 0.0
