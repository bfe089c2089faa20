"""nodetool, the interface to Cassandra's own maintenance that also works through ssh.

The command is a template (`NODETOOL`), split as a shell would and run without one. It may contain a password: logs and
errors show nodetool's arguments and its output, never the template.

Each call runs in a session of its own, so that all of its processes end with it: when the caller is done, and when the
caller has died (`tied`). On the node a repair continues without its nodetool.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings

from chatstore.domain.errors import ChatstoreError, NodeUnreachable
from chatstore.domain.texts import Duration
from chatstore.domain.texts import gettext_lazy as _
from chatstore.store.tied import NOT_FOUND

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 60.0
"""For fast commands: nearly all of it is the start of a JVM."""

END_SECONDS = 5.0
"""Time between SIGTERM and SIGKILL."""

POLL_SECONDS = 0.1

_TIED = Path(__file__).with_name("tied.py")

_UNREACHED = ("Failed to connect", "ConnectException", "Connection refused", "Connection timed out", "No route to host")
_SSH_FAILED = 255
"""ssh's own exit code, if it could not run the command."""


class NodetoolFailed(ChatstoreError):
    """nodetool reached the node but its command failed; the text is nodetool's message."""


class Call:
    """A running nodetool. Both of its outputs go to files, so that it never blocks on a reader."""

    def __init__(self, host: str, arguments: tuple[str, ...]) -> None:
        self.host = host
        self.arguments = arguments
        self._output, self._errors = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115 - `end` closes them
        command = [sys.executable, "-I", "-S", str(_TIED), str(os.getpid()), *_command_of(host), *arguments]
        self._child = subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._errors,
            start_new_session=True,
        )

    @property
    def has_ended(self) -> bool:
        """Return whether it has ended."""
        return self._child.poll() is not None

    def wait(self, seconds: float) -> bool:
        """Wait for its end; return False on a timeout."""
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def read_output(self) -> str:
        """Return its output so far."""
        return _read(self._output)

    def answer(self) -> str:
        """Return its output, once it has ended. Raises `NodeUnreachable`, `NodetoolFailed`."""
        output, errors = self.read_output(), _read(self._errors)
        code = self._child.returncode
        if code == 0:
            return output
        what = " ".join(self.arguments[:1])
        message = _error_line(errors, output)
        logger.warning("nodetool %s on %s ended with %s: %s", what, self.host, code, message)
        if code in (_SSH_FAILED, NOT_FOUND) or any(arguments in errors + output for arguments in _UNREACHED):
            raise NodeUnreachable(_("nodetool could not reach node %(node)s: %(error)s", node=self.host, error=message))
        raise NodetoolFailed(
            _("nodetool %(command)s failed on node %(node)s: %(error)s", command=what, node=self.host, error=message)
        )

    def end(self) -> None:
        """Stop all its remaining processes. Idempotent."""
        for send, seconds in ((signal.SIGTERM, END_SECONDS), (signal.SIGKILL, END_SECONDS)):
            try:
                os.killpg(self._child.pid, send)
            except ProcessLookupError:
                break
            if self.wait(seconds):
                break
        self._output.close()
        self._errors.close()


@contextmanager
def calling(host: str, *arguments: str) -> Iterator[Call]:
    """Start nodetool against a node and stop it at the end of the block at the latest. Raises `NodeUnreachable`."""
    try:
        call = Call(host, arguments)
    except OSError as error:
        raise NodeUnreachable(_("Could not start nodetool: %(error)s.", error=str(error.strerror))) from None
    try:
        yield call
    finally:
        call.end()


def run(host: str, *arguments: str, timeout: float = TIMEOUT_SECONDS) -> str:
    """Run nodetool and return its output. timeout: seconds. Raises `NodeUnreachable`, `NodetoolFailed`."""
    began = time.monotonic()
    with calling(host, *arguments) as call:
        if not call.wait(timeout):
            raise NodeUnreachable(
                _(
                    "Node %(node)s did not answer nodetool %(command)s within %(time)s.",
                    node=host,
                    command=arguments[0],
                    time=Duration(timeout),
                )
            )
        answer = call.answer()
    logger.info("nodetool %s on %s: %.1f s", arguments[0], host, time.monotonic() - began)
    return answer


def _command_of(host: str) -> list[str]:
    """Fill in the template after splitting it, so that a host name can't become two arguments."""
    ports: dict[str, int] = settings.CASSANDRA_JMX_PORTS
    names = {"{host}": host, "{port}": str(ports.get(host, settings.CASSANDRA_JMX_PORT))}
    arguments = shlex.split(settings.NODETOOL)
    for name, value in names.items():
        arguments = [word.replace(name, value) for word in arguments]
    return arguments


def _read(file: IO[bytes]) -> str:
    """Read a file that a child may still write to; the file offset is shared with the child and must not move."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode("utf-8", "replace")


def _error_line(*texts: str) -> str:
    """Return the most informative output line: the last one outside a stack trace."""
    for text in texts:
        lines = [line.strip() for line in text.splitlines()]
        meaningful = [line for line in lines if line and not line.startswith(("at ", "--", "..."))]
        errors = [line for line in meaningful if line.lower().startswith(("error:", "nodetool:"))]
        if meaningful:
            return (errors or meaningful)[-1].removeprefix("nodetool: ").removeprefix("error: ")[:300]
    return "no output"
