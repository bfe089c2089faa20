"""Plans of statements as Postgres executes them, for tests and measurements of queries over large tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import Error, connection, transaction
from django.db.models import Model

from tests.table_owner import as_table_owner

_EXPLAINED = re.compile(r"\s*\(?\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as it was executed. ms: planning and execution. rows: those read, by table, found or filtered out.

    scanned: tables that were read without an index, and more than one row of them.
    """

    sql: str
    ms: float
    rows: Mapping[str, int]
    scanned: frozenset[str]


class _Undone(Exception):
    """Ends a transaction whose changes are not wanted."""


def explain(operation: Callable[[], object], *, analyses: int = 1, use_indexes: bool = True) -> list[Statement]:
    """Run the operation in a transaction that is rolled back; return its statements with their plans.

    analyses: number of times each is analyzed; the fastest counts. use_indexes: wherever there is one, as for tables
    with more rows than those of a test.
    """
    statements: list[Statement] = []
    try:
        with transaction.atomic():
            if use_indexes:
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL enable_seqscan = off")
            with _explaining(statements, analyses):
                operation()
            raise _Undone
    except _Undone:
        return statements


def analyze(*models: type[Model]) -> None:
    """Update Postgres's statistics of tables that a test has filled, so that plans are those of larger tables."""
    with as_table_owner(), connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"ANALYZE {model._meta.db_table}")


def rows_read(statements: list[Statement], table: str) -> int:
    """Return how many rows of a table all of the statements read."""
    return sum(statement.rows.get(table, 0) for statement in statements)


@contextmanager
def _explaining(statements: list[Statement], analyses: int) -> Iterator[None]:
    def wrap(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Mapping[str, Any]) -> Any:
        if not many and _EXPLAINED.match(sql):
            plan = min((_explain(sql, params) for _ in range(analyses)), key=_ms_of)
            nodes = list(_nodes(plan["Plan"]))
            rows: dict[str, int] = {}
            for node in nodes:
                if "Relation Name" in node:
                    rows[node["Relation Name"]] = rows.get(node["Relation Name"], 0) + _rows_of(node)
            scanned = {
                node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan" and _rows_of(node) > 1
            }
            statements.append(Statement(sql, _ms_of(plan), rows, frozenset(scanned)))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrap):
        yield


def _explain(sql: str, params: Any) -> dict[str, Any]:
    """Return the plan of a statement that was executed, and undo its effects."""
    wrappers, connection.execute_wrappers = connection.execute_wrappers, []
    plan: dict[str, Any] = {"Planning Time": 0.0, "Execution Time": 0.0, "Plan": {}}
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params)
            row = cursor.fetchone()
            plan = row[0][0] if row else plan
            raise _Undone
    except (_Undone, Error):
        # A statement that fails here fails again when the operation executes it.
        return plan
    finally:
        connection.execute_wrappers = wrappers


def _ms_of(plan: Mapping[str, Any]) -> float:
    return float(plan["Planning Time"]) + float(plan["Execution Time"])


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if node:
        yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _rows_of(node: Mapping[str, Any]) -> int:
    """Return the rows that a node has read from its table."""
    counts = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    return round(sum(float(node.get(count, 0)) for count in counts) * int(node.get("Actual Loops", 0)))
