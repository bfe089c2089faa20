"""Imports in the audit log: one entry before anything is written, and one with the counts.

An import takes many transactions, so that it has none of its own. If it is killed, only the first entry exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chatstore.models.users import User
from chatstore.operations.importing.run import ImportSummary
from moderation.operations.access.audit import name_command_line, record_action

MAX_PATHS = 50
"""Paths that an entry names."""


def record_import_started(paths: Sequence[Path], *, actor: User | None, restore: bool) -> None:
    """Record that an import begins. actor: who restores by it; None for the command line."""
    details = {
        "account": name_command_line(),
        "paths": [str(path) for path in paths[:MAX_PATHS]],
        "count": len(paths),
        "restore": restore,
    }
    record_action("import_started", actor=actor, details=details)


def record_imported(summary: ImportSummary, *, actor: User | None) -> None:
    """Record what an import has done."""
    counts = ("files", "channels", "messages", "written", "already_there", "updated", "deleted_before", "restored")
    details = {"account": name_command_line(), **{name: getattr(summary, name) for name in counts}}
    record_action("messages_imported", actor=actor, details=details | {"rejected": summary.rejected})
