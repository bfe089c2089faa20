"""nodetool that blocks during `garbagecollect`: `python blocking_nodetool.py FOLDER HOST COMMAND…`.

FOLDER/stop selects the point: "before HOST" (the node has not received the command) or "after HOST" (the node has
finished, the result is not reported). There it creates FOLDER/waits and blocks until it is killed. FOLDER/done lists
the nodes that have finished.
"""

import signal
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Return the exit code of the command."""
    folder, host, *command = sys.argv[1:]
    if "garbagecollect" not in command:
        return subprocess.call(command)
    _stop_if(Path(folder), f"before {host}")
    code = subprocess.call(command)
    with (Path(folder) / "done").open("a") as done:
        done.write(f"{host}\n")
    _stop_if(Path(folder), f"after {host}")
    return code


def _stop_if(folder: Path, here: str) -> None:
    if (folder / "stop").read_text() == here:
        (folder / "waits").touch()
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
