"""Postgres makes ids that ascend with time, carry time and shard, and are made again if they were taken."""

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection, transaction

from chatstore.domain.row_ids import decode_row_id
from chatstore.operations.row_ids import retry_taken_ids
from tests.table_owner import as_table_owner

CONNECTIONS = 8
ROWS_EACH = 12_500


def ask(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


def test_postgres_makes_the_known_example() -> None:
    made = ask("SELECT make_row_id(1293840000000 + 264384000000, 5001 % 2000, 9001)")
    assert made == 2_217_813_737_473_025_833


@pytest.mark.parametrize(("call", "shard"), [("next_id()", 0), ("next_id(0)", 0), ("next_id(1001)", 1001)])
def test_an_id_carries_its_millisecond_and_its_shard(call: str, shard: int) -> None:
    before = time.time_ns() // 1_000_000
    made = decode_row_id(ask(f"SELECT {call}"))
    assert before <= made.ms <= time.time_ns() // 1_000_000
    assert made.shard == shard


def test_a_later_id_is_higher_whatever_its_shard() -> None:
    made = []
    for shard in (1_999, 0, 8_191, 7, 1_000, 3):
        made.append(ask(f"SELECT next_id({shard})"))
        time.sleep(0.002)
    assert made == sorted(made)


@pytest.mark.parametrize("shard", [-1, 8_192])
def test_a_shard_of_more_than_13_bits_is_refused(shard: int) -> None:
    with pytest.raises(Exception, match=f"shard {shard} is outside"):
        ask(f"SELECT next_id({shard})")


@pytest.fixture
def table() -> Iterator[str]:
    """A table of ids, for any number of connections."""
    name = f"row_ids_{secrets.token_hex(8)}"
    with as_table_owner(), connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY DEFAULT next_id(1001))")
    yield name
    with as_table_owner(), connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {name}")


def test_the_1025th_id_of_a_millisecond_is_taken_and_made_again(table: str) -> None:
    attempts = []

    def insert(ms: int, sequence: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {table} VALUES (make_row_id(%s, 7, %s))", [ms, sequence])

    def insert_at_the_next_attempt() -> None:
        attempts.append(1)
        insert(1_700_000_000_000 + len(attempts) - 1, 1_024)

    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} SELECT make_row_id(1700000000000, 7, n) FROM generate_series(0, 1023) n")
    with pytest.raises(IntegrityError, match="_pkey"), transaction.atomic():
        insert(1_700_000_000_000, 1_024)
    retry_taken_ids(insert_at_the_next_attempt)
    assert len(attempts) == 2
    assert ask(f"SELECT count(*) FROM {table}") == 1_025


def test_other_conflicts_are_not_retried() -> None:
    attempts = []

    def refuse() -> None:
        attempts.append(1)
        raise IntegrityError("duplicate key value violates unique constraint one_open_case")

    with pytest.raises(IntegrityError):
        retry_taken_ids(refuse)
    assert len(attempts) == 1


@pytest.mark.slow
def test_eight_connections_insert_a_hundred_thousand_different_ids(table: str) -> None:
    """An insert whose id is taken is repeated."""
    insert_all = f"""
        DO $$ BEGIN
            FOR row IN 1..{ROWS_EACH} LOOP
                LOOP
                    BEGIN
                        INSERT INTO {table} DEFAULT VALUES;
                        EXIT;
                    EXCEPTION WHEN unique_violation THEN
                    END;
                END LOOP;
            END LOOP;
        END $$"""

    def run(_: int) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute(insert_all)
        finally:
            connection.close()

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(run, range(CONNECTIONS)))
    assert ask(f"SELECT count(*) FROM {table}") == CONNECTIONS * ROWS_EACH
    assert ask(f"SELECT count(DISTINCT id) FROM {table} WHERE (id >> 10) % 8192 = 1001") == CONNECTIONS * ROWS_EACH
