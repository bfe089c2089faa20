"""Random secrets of the local servers: created once, kept in the stack's folder."""

import os
import secrets
from pathlib import Path

from chatstore.local.layout import Stack


def path_of_secret(stack: Stack, name: str) -> Path:
    """Return the file of a secret, which contains nothing else."""
    return stack.folder / "secrets" / name


def read_or_make_secret(stack: Stack, name: str) -> str:
    """Return the secret `name` of this stack, created at the first call, readable by its owner only.

    Two concurrent processes get the same one: the complete file is linked into place, and the second process reads the
    first one's.
    """
    path = path_of_secret(stack, name)
    if not path.exists():
        make_private_folder(path.parent)
        draft = path.with_name(f".{name}.{os.getpid()}")
        _write(draft, secrets.token_urlsafe(48))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()


def write_private(path: Path, text: str) -> None:
    """Write a file that contains a password: private to its owner from the first byte, and never half written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    _write(draft, text)
    draft.replace(path)


def make_private_folder(path: Path) -> None:
    """Create a folder with mode 0700; an existing one gets that mode too."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)


def _write(path: Path, text: str) -> None:
    with open(path, "w", opener=lambda file, flags: os.open(file, flags, 0o600)) as out:
        out.write(text)
