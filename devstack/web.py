"""The project's own processes beside the stores: gunicorn, two Celery workers, beat."""

import http.client
import os
import sys

from chatstore.local.layout import PROJECT_ROOT, Stack
from devstack.checks import check_port
from devstack.problems import Problem
from devstack.processes import Launch, path_of_log, read_last_lines

# In the order in which they are told to end, all within WEB_END_SECONDS: who rings the
# bell before who answers it. A worker's step cut short goes on at the next start.
NAMES = ("web", "beat", "worker", "maintenance")
WEB_END_SECONDS = 3
# gunicorn listens before its workers have loaded the project.
ANSWER_SECONDS = 300


def list_launches(stack: Stack, *, host: str = "127.0.0.1") -> list[Launch]:
    """How the four are started. Raises Problem when the web's port is taken."""
    check_port(host, stack.ports.web, stack=stack.servers, server="web")
    environ = os.environ | {"CHATSTORE_STACK": stack.name, "PYTHONUNBUFFERED": "1"}
    commands = {
        "web": [
            "gunicorn",
            "chatstore.wsgi",
            f"--bind={host}:{stack.ports.web}",
            # Not preloaded: a session to Cassandra made before a fork hangs for ever after.
            "--workers=2",
            "--threads=4",
            f"--graceful-timeout={WEB_END_SECONDS - 1}",
            # Its socket stands in the home folder, where two stacks would share it.
            "--no-control-socket",
            "--access-logfile=-",
        ],
        "worker": ["celery", "--app=chatstore", "worker", "--concurrency=2", "--loglevel=INFO"],
        # A repair takes hours; purges have workers of their own. Beside it the second process does what
        # somebody asks for meanwhile, and looks for what is due.
        "maintenance": [
            "celery",
            "--app=chatstore",
            "worker",
            "--queues=maintenance",
            "--concurrency=2",
            "--hostname=maintenance@%h",
            "--loglevel=INFO",
        ],
        "beat": ["celery", "--app=chatstore", "beat", "--loglevel=INFO", "--pidfile="],
    }
    return [Launch(name, [sys.executable, "-m", *command], environ, PROJECT_ROOT) for name, command in commands.items()]


def check_page(stack: Stack, *, host: str, name: str) -> None:
    """Asks for the first page under the site's name, which is the only one it answers to;
    raises Problem unless it is answered well (a redirect is)."""
    asked = http.client.HTTPConnection(host, stack.ports.web, timeout=ANSWER_SECONDS)
    try:
        asked.request("GET", "/", headers={"Host": name})
        status = asked.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        status = 0
        said = f"did not answer ({error})"
    else:
        said = f"answered with {status}"
    finally:
        asked.close()
    if not 200 <= status < 400:
        log = path_of_log(stack, "web")
        raise Problem(f"The first page {said}. The last lines of {log}:\n{read_last_lines(log)}")
