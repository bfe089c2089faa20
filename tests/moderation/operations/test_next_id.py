"""Ids that Postgres makes rise with time and say when and where they were made."""

import time

import pytest
from django.db import connection

BEGIN_MS = 1_293_840_000_000
"""2011-01-01T00:00Z."""


def next_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT next_id()")
        (made,) = cursor.fetchone()
    return int(made)


@pytest.mark.django_db
def test_an_id_carries_its_millisecond_and_its_shard() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL chatstore.shard = '77'")
    before = time.time_ns() // 1_000_000
    made = next_id()
    after = time.time_ns() // 1_000_000
    # As 64 bits without a sign: they last until 2080, the sign only until 2045.
    assert before <= ((made % 2**64) >> 23) + BEGIN_MS <= after
    assert (made >> 10) % 8192 == 77
    assert next_id() % 1024 == (made + 1) % 1024


@pytest.mark.django_db
def test_a_later_id_is_higher() -> None:
    made = []
    for _ in range(20):
        made.append(next_id())
        time.sleep(0.002)
    assert made == sorted(made)
