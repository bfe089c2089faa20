"""`python -m devstack exec bench .venv/bin/python -m tests.bench.page_time [NAME …]`: processor time of each page.

Requests every page of the screenshots, or those whose names start with NAME, in this process: middleware, view and
template, without the web server. Measures processor time, not the time on a clock, so that waiting for the databases
does not count; on a busy machine it is too long all the same.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import django

REQUESTS = 10
WARM_UP = 3

LIMITS = {"home": 40, "timeline": 40, "purge-": 40, "preview-": 40, "approval": 40, "poll-unchanged": 5}
"""Milliseconds by the beginning of a page's name; `OTHER_LIMIT` for all others."""

OTHER_LIMIT = 60


def limit_of(name: str) -> int:
    """Return the milliseconds that a page may take."""
    return next((limit for prefix, limit in LIMITS.items() if name.startswith(prefix)), OTHER_LIMIT)


def measure(wanted: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield pages with the median of their milliseconds."""
    # Models can be imported only after django.setup().
    from django.test import Client  # noqa: PLC0415

    from chatstore.models.users import User  # noqa: PLC0415
    from moderation.operations.lookup import new_messages  # noqa: PLC0415
    from moderation.views import purge_page  # noqa: PLC0415
    from tests.shots.running_purge import begin_now  # noqa: PLC0415
    from tests.shots.scene import arrange_scene  # noqa: PLC0415
    from tests.shots.screenshots import list_shots  # noqa: PLC0415

    def milliseconds(client: Client, path: str, status: int) -> float:
        taken = []
        for _ in range(WARM_UP + REQUESTS):
            began = time.process_time()
            response = client.get(path)
            taken.append((time.process_time() - began) * 1_000)
            if response.status_code != status:
                raise RuntimeError(f"{path} answered {response.status_code}, not {status}")
        return statistics.median(taken[WARM_UP:])

    with tempfile.TemporaryDirectory() as folder:
        scene = arrange_scene(Path(folder))
    clients = {"": Client(SERVER_NAME="localhost")}
    for role, (username, _) in scene.accounts.items():
        clients[role] = Client(SERVER_NAME="localhost")
        clients[role].force_login(User.objects.get(username=username))
    for shot in list_shots(scene):
        is_wanted = shot.name.startswith(tuple(wanted)) if wanted else not shot.name.startswith(("readme", "admin"))
        if is_wanted and shot.status == 200 and not shot.site and shot.role in clients:
            if shot.begins is not None:
                begin_now(shot.begins)
            yield shot.name, milliseconds(clients[shot.role], shot.path.partition("#")[0], 200)
    # So long that no poll is answered with a page again.
    purge_page.POLL_REFRESH_SECONDS = 10**9
    poll = f"/purges/{scene.running.pk}/live/"
    yield "poll-changed", milliseconds(clients["mona"], poll, 200)
    mona = User.objects.get(username=scene.accounts["mona"][0])
    version = purge_page.poll_version(mona, scene.running.pk)
    yield "poll-unchanged", milliseconds(clients["mona"], f"{poll}?version={version}", 204)
    new_messages.REFRESH_SECONDS = 10**9
    version = new_messages.state_of(mona, scene.sample.channel_id).version
    poll = f"/channels/{scene.sample.channel_id}/new/?version={version}"
    yield "poll-unchanged-timeline", milliseconds(clients["mona"], poll, 204)


def main(wanted: Sequence[str]) -> int:
    """Print each page beside its limit; return 1 if any is beyond it."""
    missed = 0
    for name, milliseconds in measure(wanted):
        limit = limit_of(name)
        missed += milliseconds > limit
        note = f"MISSED: at most {limit}" if milliseconds > limit else f"at most {limit}"
        print(f"{name:32}{milliseconds:8.1f} ms   {note}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    sys.exit(main(sys.argv[1:]))
