"""The project's own processes beside the stores: gunicorn, three Celery workers, beat."""

import http.client
import os
import sys

from chatstore.local.layout import PROJECT_ROOT, Stack
from devstack.checks import check_port
from devstack.problems import Problem
from devstack.processes import Launch, path_of_log, read_last_lines

# In the order in which they are asked to stop, all within WEB_END_SECONDS: processes that enqueue tasks
# before the workers. A step that a worker did not finish continues at the next start.
NAMES = ("web", "beat", "worker", "previews", "maintenance")
WEB_END_SECONDS = 3
ACCESS_LOG = '%(h)s %(t)s "%(m)s %(U)s %(H)s" %(s)s %(b)s %(M)sms'
# gunicorn accepts connections before its workers have loaded the project.
ANSWER_SECONDS = 300


def list_launches(stack: Stack, *, host: str = "127.0.0.1") -> list[Launch]:
    """Return how to start each. Raises Problem if the web's port is taken."""
    check_port(host, stack.ports.web, stack=stack.servers, server="web")
    environ = os.environ | {"CHATSTORE_STACK": stack.name, "PYTHONUNBUFFERED": "1"}
    commands = {
        "web": [
            "gunicorn",
            "chatstore.wsgi",
            f"--bind={host}:{stack.ports.web}",
            # Not preloaded: a Cassandra session opened before a fork hangs forever in the child.
            "--workers=2",
            "--threads=4",
            f"--graceful-timeout={WEB_END_SECONDS - 1}",
            # The control socket is in the home folder, where two stacks would share it.
            "--no-control-socket",
            "--access-logfile=-",
            # As usual, but for the query and the referrer: what is searched for, and tokens, are not logged.
            f"--access-logformat={ACCESS_LOG}",
        ],
        "worker": ["celery", "--app=chatstore", "worker", "--concurrency=2", "--loglevel=INFO"],
        # Previews go on while all other workers process purges.
        "previews": [
            "celery",
            "--app=chatstore",
            "worker",
            "--queues=previews",
            "--concurrency=1",
            "--hostname=previews@%h",
            "--loglevel=INFO",
        ],
        # A repair takes hours; purges have their own workers. Meanwhile the second process executes requested
        # runs and polls for due ones.
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
    """Request the first page under the site's name, the only one that it accepts; raise Problem unless the response is
    a success or a redirect.
    """
    connection = http.client.HTTPConnection(host, stack.ports.web, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/", headers={"Host": name})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        status = 0
        outcome = f"did not answer ({error})"
    else:
        outcome = f"answered with {status}"
    finally:
        connection.close()
    if not 200 <= status < 400:
        log = path_of_log(stack, "web")
        raise Problem(f"The first page {outcome}. The last lines of {log}:\n{read_last_lines(log)}")
