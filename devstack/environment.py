"""Install the locked packages into `.venv`: `python -I devstack/environment.py`.

It runs before anything is installed, so it uses only the standard library. uv does the work in a tenth of pip's time;
pip downloads uv, and does the work itself if there is no uv for the platform or uv fails. Every file is checked against
the hashes of the lock files, whichever of the two downloads it.
"""

import configparser
import ensurepip
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parents[1]
LOCK = PROJECT_ROOT / "requirements.lock"
UV_LOCK = PROJECT_ROOT / "requirements-uv.lock"
ENVIRONMENT = PROJECT_ROOT / ".venv"
UV_FOLDER = PROJECT_ROOT / ".local" / "uv"

# pip's settings for package sources, and uv's names for them.
PIP_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}


def main(arguments: Sequence[str]) -> int:
    """Install the packages, or print the path of uv (argument `uv`); return the exit code."""
    if arguments == ["uv"]:
        uv = fetch_uv()
        print(uv or "Could not download uv.", file=sys.stdout if uv else sys.stderr)
        return 0 if uv else 1
    print("Installing the locked packages into .venv", flush=True)
    return 0 if install_by_uv() or install_by_pip() else 1


def install_by_uv() -> bool:
    """Create the environment and fill it with uv; return whether that succeeded."""
    uv = fetch_uv()
    if uv is None:
        return False
    made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(ENVIRONMENT)], check=False)
    # Compile nothing: that takes ten times as long as the rest, for packages most of which no process imports.
    command = [str(uv), "pip", "sync", "--quiet", "--require-hashes"]
    command += ["--python", str(ENVIRONMENT / "bin" / "python"), str(LOCK)]
    if made.returncode == 0 and subprocess.run(command, env=make_uv_environ(), check=False).returncode == 0:
        return True
    print("uv could not install the packages; using pip", file=sys.stderr, flush=True)
    return False


def install_by_pip() -> bool:
    """Create the environment and fill it with Python's own tools; return whether that succeeded."""
    if subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=False).returncode != 0:
        print("On Debian: apt-get install python3-venv", file=sys.stderr)
        return False
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*command, "--require-hashes", "-r", str(LOCK)], check=False).returncode == 0


def fetch_uv() -> Path | None:
    """Return the uv of its lock file, installed beside the servers' files; None if there is none."""
    folder = UV_FOLDER / hashlib.sha256(UV_LOCK.read_bytes()).hexdigest()[:16]
    uv = folder / "bin" / "uv"
    if uv.exists():
        return uv
    draft = UV_FOLDER / f"draft.{os.getpid()}"
    command = [*find_pip(), "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--only-binary=:all:"]
    command += ["--require-hashes", "--target", str(draft), "-r", str(UV_LOCK)]
    try:
        fetched = subprocess.run(command, capture_output=True, check=False)
        if fetched.returncode != 0 or not (draft / "bin" / "uv").exists():
            return None
        shutil.rmtree(folder, ignore_errors=True)
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return uv


def find_pip() -> list[str]:
    """Return the command of a pip: the wheel bundled with Python for new environments, otherwise this Python's own.

    The wheel is run directly. Installing it into an environment takes five seconds.
    """
    folders = [Path(ensurepip.__file__).parent / "_bundled"]
    # Debian ships it separately, in the package python3-venv.
    folders.append(Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or "/usr/share/python-wheels"))
    wheels = [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))]
    return [sys.executable, str(wheels[0] / "pip")] if wheels else [sys.executable, "-m", "pip"]


def make_uv_environ() -> dict[str, str]:
    """Return our environment with pip's sources translated for uv, which reads none of pip's settings itself."""
    home = Path.home()
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path("/etc/pip.conf"), home / ".pip" / "pip.conf", configuration / "pip" / "pip.conf"]
    if os.environ.get("PIP_CONFIG_FILE"):
        files.append(Path(os.environ["PIP_CONFIG_FILE"]))
    return translate_settings(files, os.environ)


def translate_settings(files: Sequence[Path], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment extended by pip's files (lowest precedence first) and variables; uv's own settings win.

    Running pip for this (`pip config list`) takes two seconds.
    """
    parser = configparser.RawConfigParser()
    parser.read(files)
    found: dict[str, str] = {}
    for name, setting in PIP_SETTINGS.items():
        value = environ.get(f"PIP_{name.upper().replace('-', '_')}")
        for section in ("install", "global"):
            value = value or parser.get(section, name, fallback=None)
        if value:
            # pip separates several values by newlines or spaces; uv separates links by commas.
            found[setting] = ("," if setting == "UV_FIND_LINKS" else " ").join(value.split())
    bundle = environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE")
    if bundle:
        found.setdefault("SSL_CERT_FILE", bundle)
    return found | dict(environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
