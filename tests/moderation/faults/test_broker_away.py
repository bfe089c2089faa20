"""The broker only wakes workers up: purges confirmed while it is unavailable are executed all the same."""

import json
import os
import socket
import subprocess
import sys

import pytest
from django.conf import settings

from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.operations.purging.scheduling import due_purges
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.totals import totals_of
from tests.moderation.channels import make_channel, old_ids, write


def closed_port() -> int:
    """Return a local port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.slow
def test_a_purge_confirmed_while_the_broker_is_away_is_queued_and_found_later(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(20))
    command = (
        "purge", f"--channel={channel.id}", "--everything", "--reason=a test",
        f"--as={mona.username}", "--yes", "--detach", "--json",
    )  # fmt: skip
    completed = subprocess.run(
        [sys.executable, settings.BASE_DIR / "manage.py", *command],
        env=os.environ | {"REDIS_URL": f"redis://127.0.0.1:{closed_port()}/0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert "broker unavailable" in completed.stderr
    summary = json.loads(completed.stdout)
    assert (summary["state"], summary["left"]) == (PurgeState.QUEUED, 20)
    assert int(summary["id"]) in due_purges()
    purge = run_purge(int(summary["id"]))
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.DONE, 20)
