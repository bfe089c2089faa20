"""Every URL, every page of the admin and every command for every role; one that is missing in the table fails."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator

import pytest
from django.contrib import admin
from django.core.management import CommandError, call_command, get_commands
from django.urls import URLPattern, URLResolver, get_resolver

from chatstore.domain.roles import Role
from chatstore.models.users import User
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel
from tests.pages.access_table import CASES, COMMANDS, ROLES, UNOWNED_COMMANDS
from tests.pages.conftest import PreviewedPurge, make_previewed_purge
from tests.pages.visitors import visitor_from_elsewhere


def _lines(table: str) -> list[str]:
    return [line for line in map(str.strip, table.splitlines()) if line]


def list_routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    """Yield every route of the resolver, starting at the root."""
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from list_routes(pattern, before + str(pattern.pattern))
        else:
            assert isinstance(pattern, URLPattern)
            yield before + str(pattern.pattern)


@pytest.fixture(scope="module")
def world() -> PreviewedPurge:
    """Return a guild with a previewed purge; shared by all roles, because no request in the table changes anything."""
    return make_previewed_purge()


@pytest.fixture(scope="module")
def cast(world: PreviewedPurge) -> dict[str, User | None]:
    """Return an account for each role."""
    return make_cast(world)


def make_cast(world: PreviewedPurge) -> dict[str, User | None]:
    groups = {"lena": "leads", "aron": "auditors", "otto": "operators", "ada": "admins"}
    cast = {role: make_user(role, group=groups.get(role)) for role in ROLES if role != "anonymous"}
    elsewhere = make_channel(guild="Quarry")
    give(cast["gus"], Role.MODERATOR, guild_id=elsewhere.guild_id)
    give(cast["mona"], Role.MODERATOR, guild_id=world.channel.guild_id)
    return {"anonymous": None, **cast}


def test_every_url_is_in_the_table() -> None:
    routes = {route.replace(" ", "") or "-" for route in list_routes(get_resolver())}
    assert routes == {route for route, *_ in CASES}


def test_every_method_that_a_page_takes_is_in_the_table(world: PreviewedPurge, cast: dict[str, User | None]) -> None:
    tested: dict[str, set[str]] = {}
    urls: dict[str, str] = {}
    for route, method, url, _ in CASES:
        tested.setdefault(route, set()).add(method)
        urls[route] = url
    client, ada = visitor_from_elsewhere(), cast["ada"]
    assert ada is not None
    client.force_login(ada)
    missing = []
    for route, url in urls.items():
        # Django's admin refuses no method; it writes by its forms only, whose two methods the table has.
        if route.startswith("admin/") or route == "-":
            continue
        path = "/" + url.format(**world.names)
        answer = client.generic("PROPFIND", path)
        if answer.status_code == 302:
            # The sign-in pages send those on who are signed in.
            answer = visitor_from_elsewhere().generic("PROPFIND", path)
        taken = {name.strip() for name in answer.headers.get("Allow", "any").split(",")} - {"HEAD", "OPTIONS", "PUT"}
        if not taken <= tested[route]:
            missing.append(f"{route} takes {sorted(taken)}, the table has {sorted(tested[route])}")
    assert missing == []


@pytest.mark.parametrize("role", ROLES)
def test_each_role_gets_the_status_in_the_table(role: str, world: PreviewedPurge, cast: dict[str, User | None]) -> None:
    client, user, names = visitor_from_elsewhere(), cast[role], world.names
    if user is not None:
        client.force_login(user)
    wrong = []
    for _, method, url, statuses in CASES:
        path = "/" if url == "-" else "/" + url.format(**names)
        response = client.post(path) if method == "POST" else client.get(path)
        if response.status_code != statuses[role]:
            wrong.append(f"{method} {path}: {response.status_code}, not {statuses[role]}")
        if not {"private", "no-store"} <= set(response["Cache-Control"].split(", ")):
            wrong.append(f"{method} {path}: caches may store it")
        if user is None and response.status_code == 302:
            # The admin has its own sign-in page, public like ours; signing out redirects there too.
            assert response["Location"].startswith(("/sign-in/", "/admin/login/", "/admin/"))
        if user is not None and (path.startswith("/sign-out/") or "logout" in path):
            client.force_login(user)
    assert not wrong


def test_every_command_is_in_the_table() -> None:
    ours = {name for name, app in get_commands().items() if app in ("chatstore", "moderation")}
    assert ours == {line.split()[0] for line in _lines(COMMANDS)} | UNOWNED_COMMANDS


@pytest.mark.parametrize("line", _lines(COMMANDS))
def test_each_role_may_run_a_command_as_in_the_table(
    line: str, world: PreviewedPurge, cast: dict[str, User | None], capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, expected = line.partition(" | ")
    found = {}
    for role in ROLES[1:]:
        account = cast[role]
        assert account is not None
        name, *args = command.format(
            **world.names, name=world.moderator.username, new=f"nora-{secrets.token_hex(4)}"
        ).split()
        found[role] = _outcome_of(lambda: call_command(name, *args, "--as", account.username), capsys)  # noqa: B023
    assert found == dict(zip(ROLES[1:], expected.split(), strict=True))


def _outcome_of(run: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> str:
    """Return "forbidden", "absent" (what is named, or not visible), "nothing" (to delete or to import), or "ok"."""
    try:
        run()
    except (CommandError, SystemExit) as end:
        text = f"{end} {capsys.readouterr()}"
        if re.search("permission|administrators", text):
            return "forbidden"
        return (
            "absent"
            if "There is no" in text
            else "nothing"
            if re.search("Nothing matched|does not exist", text)
            else text
        )
    return "ok"


def test_the_admin_lists_no_other_models_and_offers_no_actions() -> None:
    listed = {f"{model._meta.app_label}/{model._meta.model_name}" for model in admin.site._registry}
    change = re.compile(r"admin/(\w+/\w+)/<path:object_id>/change/")
    in_table = {found[1] for route, *_ in CASES if (found := change.fullmatch(route))}
    assert listed == in_table
    assert {model.__name__ for model, one in admin.site._registry.items() if one.actions} == set()
