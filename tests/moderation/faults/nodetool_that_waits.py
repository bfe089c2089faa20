"""nodetool that stops within `garbagecollect`: `python nodetool_that_waits.py FOLDER HOST COMMAND…`.

FOLDER/stop says where, as "before HOST" (the node has not been asked yet) or "after HOST" (it has done it, and nobody
was told); there it writes FOLDER/waits, and stays until it is killed. FOLDER/done lists the nodes that have done it.
"""

import signal
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """The command's exit code."""
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
