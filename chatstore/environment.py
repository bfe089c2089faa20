"""Parsing of settings from environment variables, with errors that name the variable.

Only `settings.py` uses it. Every error is Django's ImproperlyConfigured and contains the variable's name, never the
value of a secret.
"""

import ipaddress
import os
import re
import ssl
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

env = environ.Env()


def read_text(name: str, default: str) -> str:
    """Return the variable, or `default` if it is absent or empty."""
    return os.environ.get(name, "").strip() or default


def read_flag(name: str, *, default: bool) -> bool:
    text = read_text(name, str(default)).lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {text!r}.")


def read_choice(name: str, *, default: str, choices: Sequence[str]) -> str:
    text = read_text(name, default)
    if text not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {text!r}.")
    return text


def read_int(name: str, *, default: int, minimum: int, maximum: int = 2**31) -> int:
    text = read_text(name, str(default))
    try:
        number = int(text)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {text!r}.") from None
    if not minimum <= number <= maximum:
        raise ImproperlyConfigured(f"{name} must be from {minimum} to {maximum}, not {number}.")
    return number


def read_float(name: str, *, default: float, above: float) -> float:
    text = read_text(name, str(default))
    try:
        number = float(text)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {text!r}.") from None
    if not above < number < float("inf"):
        raise ImproperlyConfigured(f"{name} must be greater than {above}, not {text}.")
    return number


def read_names(name: str, default: list[str]) -> list[str]:
    """Return a comma-separated list, with surrounding blanks removed."""
    names = [item.strip() for item in read_text(name, "").split(",") if item.strip()]
    return names or default


def read_choices(name: str, choices: Sequence[str]) -> list[str]:
    """Return a comma-separated list of some of the choices; none by default."""
    names = read_names(name, [])
    for unknown in set(names).difference(choices):
        raise ImproperlyConfigured(f"{name} must contain some of {', '.join(choices)}, not {unknown}.")
    return names


def read_pairs(name: str) -> list[tuple[str, str]]:
    """Return pairs, written `one=other, two=other`. The first of a pair may contain `=`."""
    pairs = []
    for item in read_names(name, []):
        first, equals, second = item.rpartition("=")
        if not (equals and first.strip() and second.strip()):
            raise ImproperlyConfigured(f"{name} must look like one=other, two=other, not {item!r}.")
        pairs.append((first.strip(), second.strip()))
    return pairs


def check_hosts(name: str, hosts: list[str]) -> frozenset[str]:
    """Return the host names in lower case, each with a port if it needs one. Patterns are invalid."""
    for host in hosts:
        if not re.fullmatch(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?", host.lower()):
            raise ImproperlyConfigured(f"{name} must contain host names, such as cdn.example.com, not {host}.")
    return frozenset(host.lower() for host in hosts)


def read_secret(name: str) -> str:
    """Return the variable, or the content of the file named by `<name>_FILE`; "" if neither is set.

    Raises ImproperlyConfigured if both are set or the file can't be read.
    """
    value = os.environ.get(name, "")
    file = os.environ.get(f"{name}_FILE", "")
    if not file:
        return value
    if value:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE, not both.")
    try:
        content = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ImproperlyConfigured(f"Could not read {name}_FILE: {reason}.") from None
    if not content:
        raise ImproperlyConfigured(f"{name}_FILE names an empty file.")
    return content


def check_url(name: str, url: str, *, schemes: set[str]) -> str:
    """Return the URL if its scheme is allowed, it has a host and a valid port."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        wanted = " or ".join(sorted(f"{scheme}://" for scheme in schemes))
        raise ImproperlyConfigured(f"{name} must be a URL that begins with {wanted} and a host.")
    return url


def read_replication(name: str, default: dict[str, int]) -> dict[str, int]:
    """Return the number of copies per datacenter, written `dc1:3,dc2:3`."""
    replication = {}
    for item in read_names(name, []):
        datacenter, _, copies = item.partition(":")
        if not datacenter or not copies.isdigit() or int(copies) < 1:
            raise ImproperlyConfigured(f"{name} must look like dc1:3,dc2:3, not {item!r}.")
        replication[datacenter] = int(copies)
    return replication or default


def read_tls(prefix: str) -> ssl.SSLContext | None:
    """Return the TLS context of `<prefix>_CA`, `_CERT`, `_KEY` and `_CHECK_HOSTNAME`; None without `_CA`."""
    ca = read_text(f"{prefix}_CA", "")
    cert = read_text(f"{prefix}_CERT", "")
    if not ca:
        if cert:
            raise ImproperlyConfigured(f"{prefix}_CERT requires {prefix}_CA.")
        return None
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise ImproperlyConfigured(f"Could not load {prefix}_CA: {error}.") from None
    context.check_hostname = read_flag(f"{prefix}_CHECK_HOSTNAME", default=True)
    if cert:
        try:
            context.load_cert_chain(cert, read_text(f"{prefix}_KEY", "") or None)
        except (OSError, ssl.SSLError) as error:
            raise ImproperlyConfigured(f"Could not load {prefix}_CERT: {error}.") from None
    return context


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
