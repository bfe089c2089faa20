"""Command output cannot control the terminal, whatever names users choose."""

from __future__ import annotations

import importlib
import io
import pkgutil
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

import chatstore.management.commands
import moderation.management.commands
from chatstore.management.inert import InertCommand

pytestmark = pytest.mark.unit

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1mname\u202e \udcff"


def list_commands() -> list[type[BaseCommand]]:
    packages = (chatstore.management.commands, moderation.management.commands)
    return [
        importlib.import_module(module.name).Command
        for package in packages
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]


class Hostile(InertCommand):
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"first line\nof {HOSTILE}")
        self.stderr.write(HOSTILE)
        if options.get("fails"):
            raise CommandError(HOSTILE)


@pytest.mark.parametrize("command", list_commands(), ids=lambda command: command.__module__.rpartition(".")[2])
def test_every_command_of_the_project_escapes_its_output(command: type[BaseCommand]) -> None:
    assert issubclass(command, InertCommand)


def test_escape_sequences_in_command_output_are_spelt_out() -> None:
    out, err = io.StringIO(), io.StringIO()
    call_command(Hostile(), stdout=out, stderr=err)
    assert out.getvalue().startswith("first line\nof [U+001B]]0;owned[U+0007][U+001B][2J[U+009B]1mname[RLO]")
    for output in (out.getvalue(), err.getvalue()):
        assert not set(output) & set("\x1b\x07\x9b\u202e")
        output.encode()


def test_escape_sequences_in_errors_are_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    command = Hostile()
    command.handle = lambda *args, **options: (_ for _ in ()).throw(CommandError(HOSTILE))  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        command.run_from_argv(["manage.py", "hostile"])
    output = capsys.readouterr().err
    assert "[U+001B][2J" in output
    assert "\x1b" not in output
