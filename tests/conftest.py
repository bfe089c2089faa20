"""The suite runs on real servers, without transactions and without truncation.

Database and keyspace are fixed and end in `_test`; tests are isolated by fresh ids and users. `make test` starts the
servers; `python -m devstack up test` does too.

Three tiers, by marker: `unit` (no server; every domain test has it), no marker (needs the servers), and `slow` (takes
minutes, or measures seconds).
"""

import os
import secrets
from collections.abc import Callable, Generator, Iterator
from typing import NoReturn

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker
from whitenoise.base import WhiteNoise
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.roles import Role
from chatstore.local.layout import read_stack
from chatstore.models import RoleGrant
from chatstore.models.users import User
from chatstore.operations.rights import forget_grants
from devstack.postgres import prepare_database
from devstack.preparing import prepare_schemas
from devstack.problems import Problem
from devstack.servers import answers, is_external, list_servers
from moderation.management.demo_accounts import set_roles
from tests.network import guard_sockets
from tests.node_events import read_node_events
from tests.server_lock import ServerLock
from tests.waiting import wait_until_nodes_are_up

# No deadline: on two busy cores any example is slow once in a while.
hypothesis_settings.register_profile("quick", max_examples=100, deadline=None)
hypothesis_settings.register_profile("thorough", max_examples=500, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "quick")
    refusal = refuse_servers(database=settings.DATABASES["default"]["NAME"], keyspace=settings.CASSANDRA["keyspace"])
    if refusal:
        pytest.exit(refusal, returncode=4)
    guard_sockets()


def refuse_servers(*, database: str, keyspace: str) -> str | None:
    """Return in one line why the suite refuses these servers; None if it accepts them."""
    for kind, name in (("database", database), ("keyspace", keyspace)):
        if not name.endswith("_test"):
            return f"The suite writes wherever it runs: the {kind} must end in _test, not be {name!r}."
    return None


HAS_WAITED = pytest.StashKey[bool]()
"""Set on a test: whether it had to wait for another test."""
HAS_SERVERS = pytest.StashKey[bool]()
"""Set on the session: whether its database and keyspace exist."""

NODES_ARE_KILLED_IN = ("tests/outage/", "tests/moderation/faults/real_workers/")
BROWSER_TESTS = "tests/pages/browser/"


# Runs before pytest selects by `-m`.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "domain" in item.path.parts:
            item.add_marker(pytest.mark.unit)
    items.sort(key=lambda item: _rank(item.path.as_posix()))


def _rank(path: str) -> int:
    """Return 0 for tests that run first, 2 for those that run last."""
    # All of them are on one worker, for which the others would wait at the end.
    if BROWSER_TESTS in path:
        return 0
    # A restarted node has cold JIT compilers, which would distort later time measurements.
    return 2 if any(folder in path for folder in NODES_ARE_KILLED_IN) else 1


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # it ships no types
    """Keep the tests of a file on one worker, and those of a folder that starts or stops shared processes.

    Those of the file `LONG` take as long as half of the others of its folder: they have such processes of their own.
    """

    FOLDERS = ("tests/outage", "tests/pages/browser", "tests/moderation/faults/real_workers")
    LONG = "tests/pages/browser/test_accessibility.py"

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        if file == self.LONG:
            return file
        return next((folder for folder in self.FOLDERS if file.startswith(f"{folder}/")), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Lock the servers for a test with its set-up and teardown; consecutive `alone` tests of a folder keep the lock."""
    item.stash[HAS_WAITED] = _server_lock.acquire(exclusive=_is_alone(item))
    try:
        return (yield)
    finally:
        if not (nextitem and _is_alone(item) and _is_alone(nextitem) and item.path.parent == nextitem.path.parent):
            _server_lock.release()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.stash[HAS_WAITED] and item.session.stash.get(HAS_SERVERS, False):
        # The test before may have stopped a node, which this process's session has noticed.
        wait_until_nodes_are_up()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report with a test that failed because of Cassandra what its nodes logged about each other."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(StoreUnavailable):
        report.sections.append(("What the nodes of Cassandra logged", read_node_events(read_stack(os.environ))))
    return report


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


_server_lock = ServerLock(read_stack(os.environ).root / "locks")


@pytest.fixture(scope="session")
def django_db_setup(request: pytest.FixtureRequest) -> None:
    """Replace pytest-django's fixture: create no `test_` database, migrate the fixed one."""
    stack = read_stack(os.environ)
    if not all(answers(server.host, server.port) for server in list_servers(stack)):
        _end_session(request, "The test servers are not up: run make test, or python -m devstack up test.")
    try:
        if not is_external("DATABASE_URL"):
            prepare_database(stack)
        prepare_schemas(stack)
    except Problem as problem:
        _end_session(request, str(problem))
    request.session.stash[HAS_SERVERS] = True


def _end_session(request: pytest.FixtureRequest, reason: str) -> NoReturn:
    # xdist does not report the reason of `pytest.exit` in a worker, and fails itself.
    request.session.shouldfail = reason
    pytest.fail(reason, pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def _open_databases(request: pytest.FixtureRequest, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Allow every test to use Postgres and to commit; a session of unit tests only starts without servers."""
    if all(item.get_closest_marker("unit") for item in request.session.items):
        yield
        return
    request.getfixturevalue("django_db_setup")
    with django_db_blocker.unblock():
        yield
        connections["default"].close()


@pytest.fixture(scope="session", autouse=True)
def _list_static_files_once() -> Iterator[None]:
    """List the static files once per process: each test client loads the middleware, which lists them; that took a
    tenth of the suite's processor time.
    """
    list_files, listed = WhiteNoise.update_files_dictionary, {}

    def update(self: WhiteNoise, root: str, prefix: str) -> None:
        if (root, prefix) not in listed:
            list_files(self, root, prefix)
            listed[root, prefix] = dict(self.files)
        self.files.update(listed[root, prefix])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoise, "update_files_dictionary", update)
        yield


ROLES: dict[str, tuple[Role, ...]] = {
    "moderators": (Role.MODERATOR, Role.DIRECT),
    "leads": (Role.LEAD, Role.DIRECT),
    "auditors": (Role.AUDITOR, Role.DIRECT),
    "operators": (Role.OPERATOR, Role.DIRECT),
    "admins": (Role.ADMIN,),
}
"""Roles for the whole installation, direct messages included: most channels of tests have no guild."""


def make_user(name: str, *, group: str | None, is_staff: bool = True) -> User:
    """Create a user of the cast with a unique name. group: of `ROLES`."""
    user = User.objects.create_user(f"{name}-{secrets.token_hex(4)}", is_staff=is_staff)
    if group is not None:
        set_roles(user, ROLES[group])
    return user


def give(user: User, role: Role, **place: int | None) -> RoleGrant:
    """Give a user a role in a guild (guild_id) or a channel (channel_id); without either everywhere."""
    forget_grants(user)
    return RoleGrant.objects.create(account=user, role=role, **place)


@pytest.fixture
def mona() -> User:
    """Mona, a moderator."""
    return make_user("mona", group="moderators")


@pytest.fixture
def otto() -> User:
    """Otto, an operator."""
    return make_user("otto", group="operators")


@pytest.fixture
def ada() -> User:
    """Ada, an administrator."""
    return make_user("ada", group="admins")


@pytest.fixture
def lena() -> User:
    """Lena, a lead."""
    return make_user("lena", group="leads")


@pytest.fixture
def tess() -> User:
    """Tess, staff without permissions."""
    return make_user("tess", group=None)


@pytest.fixture
def sign_in() -> Callable[[User], Client]:
    """Return a function that opens a client signed in as a user."""

    def open_client(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return open_client
