"""Create the roles of fresh Cassandra nodes: `python -I devstack/logins.py`, with parameters as JSON on stdin.

A process of its own, since it needs the driver, which nothing else in this package loads. A fresh cluster has one
superuser with a well-known password. That password is replaced at once, and the application gets a role that is not a
superuser. Idempotent.

Exits with 0 if the roles exist, with `NO_PASSWORDS` if the nodes do not authenticate.
"""

import json
import sys
import time
from typing import Any

from cassandra import AuthenticationFailed, ConsistencyLevel, DriverException, InvalidRequest, ProtocolVersion
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import DCAwareRoundRobinPolicy

WELL_KNOWN_PASSWORD = "cassandra"  # noqa: S105 - Cassandra's default, replaced here
NO_PASSWORDS = 3
# The nodes create their superuser half a second after they begin to answer, once both are up.
WAIT_SECONDS = 300.0
PAUSE_SECONDS = 0.2


def main() -> int:
    """Create the roles; return the exit code."""
    request = json.load(sys.stdin)
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return make_roles(request)
        except (NoHostAvailable, DriverException) as error:
            if time.monotonic() > end:
                print(describe(error), file=sys.stderr)
                return 1
        time.sleep(PAUSE_SECONDS)


def make_roles(request: dict[str, Any]) -> int:
    """Create the roles; return the exit code. Raises the driver's errors while the nodes are not ready."""
    superuser, password = request["superuser"], request["superuser_password"]
    try:
        cluster, session = connect(request, superuser, password)
    except NoHostAvailable as error:
        if not is_refused(error):
            raise
        cluster, session = connect(request, superuser, WELL_KNOWN_PASSWORD)
    try:
        replicate_roles(session, copies=len(request["hosts"]))
        role = request["role"]
        session.execute(f"CREATE ROLE IF NOT EXISTS {role} WITH PASSWORD = '{request['password']}' AND LOGIN = true")
        session.execute(f"ALTER ROLE {role} WITH PASSWORD = '{request['password']}'")
        # Last: if this process is killed before, the next run can still log in with the well-known password.
        session.execute(f"ALTER ROLE {superuser} WITH PASSWORD = '{password}'")
    except InvalidRequest as error:
        if "doesn't support PASSWORD" not in str(error):
            raise
        return NO_PASSWORDS
    finally:
        cluster.shutdown()
    return 0


def connect(request: dict[str, Any], user: str, password: str) -> tuple[Cluster, Session]:
    """Connect to all nodes, which must be up, since the roles are replicated to all of them."""
    profile = ExecutionProfile(
        load_balancing_policy=DCAwareRoundRobinPolicy(request["datacenter"]), consistency_level=ConsistencyLevel.ALL
    )
    cluster = Cluster(
        request["hosts"],
        port=request["port"],
        protocol_version=ProtocolVersion.V5,
        auth_provider=PlainTextAuthProvider(user, password),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    try:
        return cluster, cluster.connect()
    except BaseException:
        cluster.shutdown()
        raise


def replicate_roles(session: Session, *, copies: int) -> None:
    """Replicate every role to each node, so that clients can log in while the other node is down."""
    cql = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'system_auth'"
    if int(session.execute(cql).one()[0]["replication_factor"]) < copies:
        # Data from before the introduction of roles had one copy.
        strategy = f"{{'class': 'SimpleStrategy', 'replication_factor': {copies}}}"
        session.execute(f"ALTER KEYSPACE system_auth WITH replication = {strategy}")
    # At ALL: read repair writes missing rows to the other node.
    session.execute("SELECT * FROM system_auth.roles")


def is_refused(error: NoHostAvailable) -> bool:
    """Return whether a node rejected the password."""
    causes = error.errors.values() if isinstance(error.errors, dict) else ()
    return any(isinstance(cause, AuthenticationFailed) for cause in causes)


def describe(error: Exception) -> str:
    """Return the cause on one line."""
    if isinstance(error, NoHostAvailable) and is_refused(error):
        return "the nodes accept neither the stack's password nor the default one"
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
