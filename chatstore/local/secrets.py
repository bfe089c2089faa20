"""The random secrets of the local servers: made once, kept in the stack's folder."""

import os
import secrets

from chatstore.local.layout import Stack


def read_or_make_secret(stack: Stack, name: str) -> str:
    """The secret `name` of this stack, made at the first call, readable by its owner only.

    Two processes that ask at once get the same one: the file is linked into its place
    whole, and whoever comes second reads the first one's.
    """
    folder = stack.folder / "secrets"
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        draft = folder / f".{name}.{os.getpid()}"
        with open(draft, "w", opener=lambda file, flags: os.open(file, flags, 0o600)) as out:
            out.write(secrets.token_urlsafe(48))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()
