import pytest

from devstack.postgres import is_not_ready

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("message", "comes_again"),
    [
        ("createdb: error: connection failed: FATAL:  the database system is starting up", True),
        ("createdb: error: connection failed: FATAL:  the database system is not yet accepting connections", True),
        ('createdb: error: connection failed: FATAL:  password authentication failed for user "chatstore"', False),
        ('createdb: error: database creation failed: ERROR:  database "chatstore" already exists', False),
        ("", False),
    ],
)
def test_a_database_that_is_not_ready_is_polled(message: str, comes_again: bool) -> None:
    assert is_not_ready(message) == comes_again
