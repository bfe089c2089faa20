"""The filling of a database for measurements replaces all rows, so it accepts no other database."""

from __future__ import annotations

import pytest

from tests.scale.filling import YEAR, WrongDatabase, fill_database, sizes_of


def test_the_database_of_the_suite_is_not_filled() -> None:
    with pytest.raises(WrongDatabase, match="chatstore_scale"):
        fill_database(sizes_of(0.001), report=print)


def test_a_factor_makes_everything_smaller_but_the_number_of_guilds() -> None:
    small = sizes_of(0.01)
    assert (small.guilds, small.steps, small.audit_entries) == (YEAR.guilds, 50_000, 100_000)
    assert small.large_purges * small.steps_of_large_purge <= small.steps
