import os
import socket

import pytest
from django.db import connection

from chatstore.local.layout import read_stack
from tests.network import NetworkRefused


@pytest.mark.unit
@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "chatstore.example"])
def test_a_test_reaches_no_other_machine(host: str) -> None:
    with pytest.raises(NetworkRefused):
        socket.create_connection((host, 80), timeout=1)


@pytest.mark.unit
def test_a_test_reaches_this_machine() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname(), timeout=1) as client:
            assert client.getpeername() == listener.getsockname()


def test_the_suite_writes_to_the_fixed_database_and_commits() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == (read_stack(os.environ).database,)
    assert not connection.in_atomic_block
