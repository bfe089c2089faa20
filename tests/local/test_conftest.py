import os
import subprocess
import sys

import pytest

from chatstore.local.layout import PROJECT_ROOT
from tests.conftest import refuse_servers


@pytest.mark.parametrize(
    ("database", "keyspace", "refused"),
    [
        ("chatstore_test", "chatstore_test", None),
        ("chatstore", "chatstore_test", "database"),
        ("chatstore_test", "chatstore", "keyspace"),
        ("chatstore_test2", "chatstore_test", "database"),
    ],
)
def test_only_names_that_end_in_test_are_written_to(database: str, keyspace: str, refused: str | None) -> None:
    told = refuse_servers(database=database, keyspace=keyspace)
    assert told is None if refused is None else f"the {refused} must end in _test" in str(told)


def test_a_session_on_another_keyspace_ends_before_its_first_test() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/local/test_network.py", "-q"],
        cwd=PROJECT_ROOT,
        env=os.environ | {"CASSANDRA_KEYSPACE": "production"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 4
    assert "the keyspace must end in _test, not be 'production'" in answer.stdout + answer.stderr
    assert "passed" not in answer.stdout
