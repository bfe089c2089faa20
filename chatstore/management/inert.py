"""Commands with escaped output, because names and reasons come from untrusted users."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from django.core.management.base import BaseCommand, OutputWrapper

from chatstore.domain.controls import show_controls


class InertOutput(OutputWrapper):
    """Output stream that escapes control characters, so that no name moves a terminal's cursor or sets its title."""

    def write(self, msg: str = "", *args: Any, **options: Any) -> None:  # type: ignore[override]
        super().write(show_controls(msg), *args, **options)


class InertCommand(BaseCommand):
    """Command that escapes everything it writes, errors included."""

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None, **options: Any) -> None:
        super().__init__(stdout, stderr, **options)
        style = self.stderr.style_func
        self.stdout = InertOutput(stdout or sys.stdout)
        self.stderr = InertOutput(stderr or sys.stderr)
        self.stderr.style_func = style

    def execute(self, *args: Any, **options: Any) -> str | None:
        for name in ("stdout", "stderr"):
            if stream := options.pop(name, None):
                setattr(self, name, InertOutput(stream))
        return super().execute(*args, **options)
