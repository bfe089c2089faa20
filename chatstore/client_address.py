"""Network address of a request's client."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str | None:
    """Return the IP address of a client; None if there is none, as behind a Unix socket.

    Behind `TRUSTED_PROXIES` proxies it is the one that the outermost of them added to `X-Forwarded-For`: everything
    before it is what the client claims. Without trusted proxies the header is ignored.
    """
    proxies = settings.TRUSTED_PROXIES
    forwarded = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    if proxies and len(forwarded) >= proxies and (address := _parse(forwarded[-proxies])):
        return address
    return _parse(request.META.get("REMOTE_ADDR", ""))


def attempts_address(request: HttpRequest) -> str | None:
    """Return the address that failed sign-ins are counted for; None if the client has none.

    For IPv6 it is that of the client's network of 64 bits: who has one address of it usually has all of them.
    """
    address = client_address(request)
    if address is None:
        return None
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(parsed.ipv4_mapped or ipaddress.ip_network(f"{address}/64", strict=False).network_address)


def _parse(text: str) -> str | None:
    try:
        # Without the interface of this machine that a link-local address may name: a client has one address.
        return str(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        return None
