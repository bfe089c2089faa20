"""Malformed requests to every route: hostile values in paths, parameters, fields, bodies, headers and cookies.

Routes come from the URLconf, fields from the forms of the pages and from the names that a view's module reads, so that
a new page is included by itself.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from itertools import chain
from typing import Any
from urllib.parse import quote, urlencode

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

HOSTILE: tuple[str, ...] = (
    "",
    " ",
    "0",
    "-1",
    "\x00",
    "a\x00b",
    "9" * 30,
    "9" * 5_000,
    "-9223372036854775809",
    "9223372036854775807",
    "18446744073709551616",
    "1e400",
    "NaN",
    "٣",
    "²",
    "0x10",
    "1_000",
    "+5",
    "true",
    "null",
    "[]",
    '{"a":',
    "x" * 70_000,
    "x,y " * 400,
    "<script>alert(1)</script>",
    "'; DROP TABLE moderation_purge; --",
    "%s%n%d {0} {{ 7|add:7 }}",
    "%00",
    "../../etc/passwd",
    "\u202e\u2066",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    "\ufffd\ufeff\u2028",
    "(a+)+$",
    "(?P<n>",
    "\\",
    "2024-13-45",
    "0001-01-01",
    "9999-12-31T23:59:59-23:59",
    "24:60",
    "in a minute",
    "https://discord.com/channels/1/2/3",
    "https://[::1",
    "javascript:alert(1)",
    "1:2:3",
    "9223372036854775807:9223372036854775807",
    ":",
    "* * * * *",
    "61 * * * *",
)

_BODIES: tuple[tuple[str, bytes], ...] = (
    ("application/json", b'{"a":'),
    ("application/x-www-form-urlencoded", b"a=%ff&%ff=%zz&&&=&;" + b"&" * 500),
    ("application/x-www-form-urlencoded; charset=nothing", b"a=1"),
    ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % number for number in range(3_000))),
    ("multipart/form-data", b"no boundary"),
    ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n'),
    ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; filename=\xff\r\n\r\n\x00\r\n--x--"),
    ("\x00", b"\x00"),
    ("text/plain", b"x" * 3_000_000),
)

_HEADERS = (
    "HX-Request HX-Target HX-Current-URL Referer Accept-Language X-Request-ID X-Forwarded-For Authorization "
    "If-None-Match If-Modified-Since Range Accept-Encoding User-Agent"
).split()

_UNSAFE_IN_HEADERS = re.compile(r"[^\x20-\x7e\xa0-\xff]")

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")

_LEFT_OUT = ("sign-out/", "admin/logout/")
"""Routes that end the session, after which every page only asks for a sign-in."""

_STARTS_WORK = re.compile(r"/health/|/run/$|/again/$")
"""Actions of forms that request maintenance of the nodes, which other tests would wait for."""


MAX_WATCHED_BYTES = 200

Names = Mapping[str, Any]
"""Values that exist, by the name of a parameter or a field; several are a tuple."""


@dataclass(frozen=True, slots=True)
class Route:
    """A route: its path as a format with named parameters, and the names of fields that its view may read."""

    path: str
    parameters: tuple[str, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a page: its action, its method, and its fields with the values that it has."""

    action: str
    method: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a request. seconds: until its first part. told: which of the watched texts it contains."""

    status: int
    seconds: float
    told: frozenset[str]


@dataclass(frozen=True, slots=True)
class Request:
    """A request, as a client's arguments."""

    method: str
    path: str
    arguments: Mapping[str, Any]

    def send(self, client: Client, *, watched: Collection[str] = ()) -> Answer:
        """Send it, and read all of the answer. watched: texts that are looked for in it."""
        began = time.monotonic()
        arguments = dict(self.arguments)
        if "content_type" in arguments:
            # As it is: `post` would encode the body itself.
            answer: Any = client.generic("POST", self.path, **arguments)
        else:
            answer = getattr(client, self.method)(self.path, **arguments)
        # An export is as long as what it exports.
        parts = iter(answer.streaming_content if answer.streaming else (answer.content,))
        first = next(parts, b"")
        seconds = time.monotonic() - began
        found: set[str] = set()
        before = str(answer.headers).encode()
        for part in chain([first], parts):
            # A text may begin in one part and end in the next one.
            text = before + part
            found.update(one for one in watched if one.encode() in text)
            before = text[-MAX_WATCHED_BYTES:]
        return Answer(answer.status_code, seconds, frozenset(found))

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path[:300]!r} {str(dict(self.arguments))[:700]}"


def list_routes() -> list[Route]:
    """Return every route but those that sign out."""
    routes = _routes_below(get_resolver(), "")
    return [route for route in routes if not route.path.startswith(_LEFT_OUT)]


def hostile_requests(route: Route, names: Names, chance: random.Random, *, count: int) -> Iterator[Request]:
    """Yield requests to a route. names: values of its parameters that exist."""
    for _ in range(count):
        parameters = {name: str(chance.choice(_values(names, name))) for name in route.parameters}
        if route.parameters and chance.random() < 0.3:
            parameters[chance.choice(route.parameters)] = chance.choice(HOSTILE)
        path = "/" + route.path.format(**{name: quote(value, safe="") for name, value in parameters.items()})
        query = urlencode(_some(route.fields, names, chance), doseq=True)
        if chance.random() < 0.5:
            yield Request("get", f"{path}?{query}"[:60_000], _headers(chance))
        elif chance.random() < 0.2:
            content_type, body = chance.choice(_BODIES)
            yield Request("post", path, {"data": body, "content_type": content_type, **_headers(chance)})
        else:
            yield Request("post", path, {"data": _some(route.fields, names, chance), **_headers(chance)})


def hostile_posts(page: str, path: str, names: Names, chance: random.Random) -> Iterator[Request]:
    """Yield a request for each form of a page, with one or two hostile fields beside the right ones."""
    for form in forms_of(page):
        fields: dict[str, Any] = dict(form.fields)
        for name in chance.sample(sorted(fields), min(len(fields), chance.choice((1, 1, 2)))):
            fields[name] = chance.choice(HOSTILE)
        target = form.action or path
        is_left_out = target.lstrip("/").startswith(_LEFT_OUT) or (
            form.method == "post" and _STARTS_WORK.search(target)
        )
        if target.startswith("/") and not is_left_out:
            yield Request(form.method, target, {"data": fields})


def forms_of(page: str) -> list[Form]:
    """Return the forms of a page, without those that sign out."""
    reader = _FormReader()
    reader.feed(page)
    return reader.forms


def _some(fields: Sequence[str], names: Names, chance: random.Random) -> dict[str, Any]:
    """Return a few fields with hostile values, and a few with values that exist."""
    chosen = chance.sample(fields, min(len(fields), chance.choice((0, 1, 1, 2, 3, 8))))
    values: dict[str, Any] = {}
    for name in chosen:
        kind = chance.random()
        if kind < 0.7:
            values[name] = chance.choice(HOSTILE)
        elif kind < 0.8:
            values[name] = [chance.choice(HOSTILE) for _ in range(3)]
        else:
            values[name] = str(chance.choice(_values(names, chance.choice(list(names)))))
    return values


def _values(names: Names, name: str) -> tuple[Any, ...]:
    found = names.get(name, "1")
    return found if isinstance(found, tuple) else (found,)


def _headers(chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.6:
        return {}
    name = chance.choice(_HEADERS)
    value = _UNSAFE_IN_HEADERS.sub("?", chance.choice(HOSTILE))[:8_000]
    return {"headers": {name: value, **({"HX-Request": "true"} if chance.random() < 0.3 else {})}}


def _routes_below(resolver: URLResolver, before: str) -> Iterator[Route]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from _routes_below(pattern, before + str(pattern.pattern))
            continue
        assert isinstance(pattern, URLPattern)
        path, parameters = _as_format(before + str(pattern.pattern))
        yield Route(path, parameters, _fields_read_by(pattern.callback))


def _as_format(route: str) -> tuple[str, tuple[str, ...]]:
    """Return a route as a format, and its parameters; regular expressions of the admin too."""
    route = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", route).replace("^", "").replace("$", "")
    parameters = tuple(re.findall(r"<(?:\w+:)?(\w+)>", route))
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route), parameters


def _fields_read_by(view: Callable[..., Any]) -> tuple[str, ...]:
    module = inspect.getmodule(inspect.unwrap(view))
    own = module is not None and module.__name__.startswith(("moderation", "chatstore"))
    return _names_in(module.__file__ or "") if own and module is not None else _ADMIN_FIELDS


_ADMIN_FIELDS = tuple(
    (
        "q p o all e action _selected_action select_across name id guild kind username password1 password2 groups "
        "is_active _popup _to_field _changelist_filters app_label model_name field_name term s messages_per_minute "
        "accounts"
    ).split()
)


@cache
def _names_in(file: str) -> tuple[str, ...]:
    """Return the string literals of a module that can be names of fields, and those of all forms."""
    found = set()
    with open(file, encoding="utf-8") as source:  # noqa: PTH123
        for node in ast.walk(ast.parse(source.read())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value):
                found.add(node.value)
    return tuple(sorted(found | set(_form_fields())))


@cache
def _form_fields() -> tuple[str, ...]:
    from moderation import forms  # noqa: PLC0415  the URLconf has loaded it

    return tuple(
        name
        for kind in vars(forms).values()
        if isinstance(kind, type) and hasattr(kind, "base_fields")
        for name in kind.base_fields
    )


class _FormReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._fields: dict[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._fields = {}
            method = "post" if given.get("method", "").lower() == "post" else "get"
            if "sign-out" not in given.get("action", "") and "logout" not in given.get("action", ""):
                self.forms.append(Form(given.get("action", ""), method, self._fields))
        elif self._fields is not None and tag in ("input", "select", "textarea", "button") and given.get("name"):
            self._fields.setdefault(given["name"], given.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._fields = None
