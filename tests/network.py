"""Network guard of the tests: names and addresses other than loopback are refused."""

import ipaddress
import socket
from collections.abc import Callable
from typing import Any


class NetworkRefused(RuntimeError):
    """A test tried to reach another machine."""


def is_local(host: object) -> bool:
    """Return whether the host, as passed to sockets, is this machine."""
    if host is None or host in ("", b"", "localhost", b"localhost"):
        return True
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def guard_sockets() -> None:
    """Replace the connect and name resolution functions of this process permanently."""
    socket.socket.connect = _guard_connect(socket.socket.connect)  # type: ignore[method-assign]
    socket.socket.connect_ex = _guard_connect(socket.socket.connect_ex)  # type: ignore[method-assign]
    look_up = socket.getaddrinfo

    def getaddrinfo(host: object, *arguments: Any, **options: Any) -> Any:
        _refuse_others(host)
        return look_up(host, *arguments, **options)  # type: ignore[arg-type]

    socket.getaddrinfo = getaddrinfo


def _guard_connect(connect: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _refuse_others(address[0])
        return connect(self, address)

    return guarded


def _refuse_others(host: object) -> None:
    if not is_local(host):
        raise NetworkRefused(f"A test may not reach {host!r}: only this machine.")
