"""Malformed input to every route and form, as every role: never a 500, and in the slow tier nothing over two seconds.

Meanwhile a request for approval, a raid and a report of a guild are open. No answer to people who may not see these
contains their texts.

`FUZZ_SEED` sends other requests; it is named by a failure.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.test import Client
from pytest_django import Settings

from chatstore.models import ChatUser
from chatstore.models.users import User
from moderation.models import Purge
from tests.conftest import make_user
from tests.moderation.channels import confirm, make_channel, run_to_end
from tests.pages.access_table import CASES
from tests.pages.conftest import make_previewed_purge
from tests.pages.fuzzed_objects import Planted, planted_objects
from tests.pages.fuzzing import Names, Request, Route, forms_of, hostile_posts, hostile_requests, list_routes
from tests.pages.visitors import visitor_from_elsewhere

ROLES = {
    "tess": None,
    "mona": "moderators",
    "lena": "leads",
    "aron": "auditors",
    "otto": "operators",
    "ada": "admins",
}
MAX_SECONDS = 2.0

SEED = os.environ.get("FUZZ_SEED") or "a784e84f"

PAGES = (
    "/", "/account/", "/account/password/", "/preferences/", "/delete/", "/purges/", "/holds/", "/reports/", "/audit/",
    "/health/", "/health/channels/", "/maintenance/", "/maintenance/jobs/bookkeeping/", "/maintenance/runs/",
    "/channels/{channel}/", "/channels/{channel}/delete/", "/channels/{channel}/health/", "/users/{chatuser}/",
    "/raids/{channel}/", "/purges/{purge}/", "/purges/{purge}/messages/", "/purges/{ended}/", "/purges/{ended}/undo/",
    "/reports/{case}/", "/admin/chatstore/channel/{channel}/change/", "/admin/chatstore/channel/add/",
    "/admin/auth/user/{user}/change/", "/admin/auth/user/{user}/password/", "/admin/auth/user/add/",
    "/admin/moderation/raidsettings/add/", "/admin/chatstore/channel/", "/purges/{awaiting}/", "/purges/{rejected}/",
    "/purges/{approved}/", "/purges/{approved}/undo/", "/raids/{raided}/", "/channels/{raided}/",
    "/reports/{reported}/", "/audit/{about_approval}/", "/audit/?purge={awaiting}", "/roles/", "/roles/limits/",
    "/guilds/{planted_guild}/raid-settings/", "/invitation/?token={token}",
)  # fmt: skip

_WITHOUT_FORMS = ("/audit/export", "/admin/logout", "/health/channels.", "/purges/{purge}/evidence", "/metrics")

FORM_PAGES = (
    *PAGES,
    "/account/second-factor/", "/find/?q=vic", "/messages/1/", "/maintenance/runs/?state=failed",
    *(f"/{url}" for _, method, url, _ in CASES if method == "GET" and url != "-"),
)  # fmt: skip
"""Pages whose forms are sent: every page, in several states where its forms depend on it."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    """Objects of a guild, among them a request for approval that stays open."""
    with planted_objects(tmp_path_factory.mktemp("archives")) as planted:
        yield planted


@pytest.fixture(scope="module")
def names(planted: Planted) -> dict[str, Any]:
    """Values of parameters that exist: a previewed purge, one that has ended, and what was planted."""
    ended = make_previewed_purge()
    run_to_end(confirm(ended.moderator, ended.purge))
    shown = make_previewed_purge().names
    other = make_user("dora", group="moderators")
    # Other tests have left thousands of messages of the author of these purges.
    author = ChatUser.objects.create(pk=secrets.randbits(40) + 2**41, name="quiet")
    own = planted.names
    return {**shown, **own} | {
        "chatuser": author.pk,
        "ended": ended.purge.pk,
        "user": other.pk,
        "purge_id": (shown["purge"], own["awaiting"], own["rejected"], own["approved"]),
        "channel_id": (shown["channel"], own["raided"]),
        "message_id": shown["message"],
        "guild_id": (shown["guild"], own["planted_guild"]),
        "user_id": author.pk,
        "case_id": (shown["case"], own["reported"]),
        "entry_id": (shown["audit"], own["about_approval"]),
        "object_id": shown["channel"],
        "id": other.pk,
        "bucket": -7,
        "app_label": "chatstore",
        # No action and no job of this name exist: those that do would reach for the nodes.
        "action": "nothing",
        "name": "nothing",
        "url": "nowhere",
    }


@pytest.fixture(scope="module")
def cast() -> dict[str, User]:
    return {role: make_user(role, group=group) for role, group in ROLES.items()}


@pytest.fixture(autouse=True)
def _forget_attempts() -> Iterator[None]:
    yield
    AccessAttempt.objects.all().delete()


def send(client: Client, request: Request, *, watched: Sequence[str] = ()) -> float:
    """Send a request; return the seconds until the first part of its answer.

    watched: texts that the answer may not contain. Fails if it does, for a status of 500 or more, and for an exception.
    """
    try:
        answer = request.send(client, watched=watched)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} at {request} (FUZZ_SEED={SEED})") from error
    assert answer.status < 500, f"{answer.status} at {request} (FUZZ_SEED={SEED})"
    assert not answer.told, f"{answer.told} at {request} (FUZZ_SEED={SEED})"
    return answer.seconds


def send_all(
    client: Client, requests: Iterable[Request], user: User | None, *, watched: Sequence[str] = ()
) -> Iterator[tuple[float, Request]]:
    for request in requests:
        if user is not None and "_auth_user_id" not in client.session:
            client.force_login(user)
        yield send(client, request, watched=watched), request


def fuzz_routes(
    routes: list[Route],
    names: Names,
    user: User | None,
    *,
    label: str,
    count: int,
    watched: Sequence[str] = (),
) -> Iterator[tuple[float, Request]]:
    chance, client = random.Random(f"{SEED} {label}"), visitor_from_elsewhere()
    for route in routes:
        yield from send_all(client, hostile_requests(route, names, chance, count=count), user, watched=watched)


def fuzz_forms(names: Names, user: User, *, label: str, rounds: int) -> Iterator[tuple[float, Request]]:
    chance, client = random.Random(f"{SEED} {label}"), visitor_from_elsewhere()
    for _ in range(rounds):
        for path in dict.fromkeys(path for path in FORM_PAGES if not path.startswith(_WITHOUT_FORMS)):
            client.force_login(user)
            page = client.get(path.format(**names))
            if page.status_code == 200:
                yield from send_all(
                    client, hostile_posts(page.content.decode(), path.format(**names), names, chance), user
                )


def test_no_answer_tells_an_outsider_what_is_of_another_guild(names: dict[str, Any], planted: Planted) -> None:
    routes, people = list_routes(), [("a visitor", None), *planted.outsiders.items()]
    assert planted.is_untouched()
    for number, (label, user) in enumerate(people):
        opened = (Request("get", path.format(**names), {}) for path in PAGES)
        list(send_all(visitor_from_elsewhere(), opened, user, watched=planted.texts))
        some = routes[number :: len(people)]
        list(fuzz_routes(some, names, user, label=label, count=1, watched=planted.texts))
    assert planted.is_untouched()


def test_the_planted_texts_are_on_the_pages_of_who_may_read_them(
    names: dict[str, Any], planted: Planted, cast: dict[str, User]
) -> None:
    client, word = Client(), planted.texts[0]
    client.force_login(cast["ada"])
    paths = ("/purges/{approved}/", "/raids/{raided}/", "/reports/{reported}/", "/audit/{about_approval}/")
    missing = [path for path in paths if not Request("get", path.format(**names), {}).send(client, watched=[word]).told]
    assert missing == []


def test_no_request_to_any_route_fails(names: dict[str, Any], cast: dict[str, User]) -> None:
    routes = list_routes()
    assert len(routes) > 120
    # Each route once, as one of the roles; the slow tier sends more, as every role and as a visitor.
    for number, (role, user) in enumerate(cast.items()):
        list(fuzz_routes(routes[number :: len(cast)], names, user, label=role, count=1))


@pytest.mark.slow
def test_no_form_fails(names: dict[str, Any], cast: dict[str, User]) -> None:
    sent = list(fuzz_forms(names, cast["ada"], label="forms", rounds=1))
    assert len(sent) > 40


def test_the_fields_of_forms_are_found() -> None:
    (form,) = forms_of(
        '<form method="POST" action="/x/"><input name="a" value="&lt;1"><select name="b"></select></form>'
    )
    assert (form.method, form.action, dict(form.fields)) == ("post", "/x/", {"a": "<1", "b": ""})


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_no_answer_to_any_route_tells_an_outsider_what_is_of_another_guild(
    number: int, names: dict[str, Any], planted: Planted
) -> None:
    label, user = [("a visitor", None), *planted.outsiders.items()][number]
    list(fuzz_routes(list_routes(), names, user, label=f"slow {label}", count=4, watched=planted.texts))


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("role", ["anonymous", *ROLES])
def test_no_request_to_any_route_fails_or_is_slow(
    role: str, names: dict[str, Any], cast: dict[str, User], settings: Settings
) -> None:
    # As in production.
    settings.PAGE_DEADLINE_SECONDS = 1.0
    user = cast.get(role)
    slow = [
        (seconds, str(request))
        for seconds, request in fuzz_routes(list_routes(), names, user, label=f"slow {role}", count=5)
        if seconds > MAX_SECONDS
    ]
    if user is not None:
        sent = fuzz_forms(names, user, label=f"slow forms {role}", rounds=2)
        slow += [(seconds, str(request)) for seconds, request in sent if seconds > MAX_SECONDS]
    assert slow == [], f"FUZZ_SEED={SEED}"
    assert Purge.objects.filter(pk=names["ended"]).exists()
    assert make_channel().pk
