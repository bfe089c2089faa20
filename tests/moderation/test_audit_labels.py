"""Every action that the audit log records has a label."""

import ast
from pathlib import Path

import pytest

from moderation.presentation.audit import AUDIT_ACTIONS

pytestmark = pytest.mark.unit

OPERATIONS = Path(__file__).parents[2] / "moderation" / "operations"


def recorded_actions() -> set[str]:
    """Return the literals that operations pass as an action of the audit log."""
    found = set()
    for path in OPERATIONS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            named = [keyword.value for keyword in node.keywords if keyword.arg == "action"]
            is_record = isinstance(node.func, ast.Name) and node.func.id == "record_action"
            for value in [*named, *(node.args[:1] if is_record else ())]:
                if isinstance(value, ast.Constant):
                    found.add(str(value.value))
    return found


def test_every_recorded_action_has_a_label() -> None:
    assert "purge_paused" in recorded_actions()
    assert recorded_actions() - AUDIT_ACTIONS.keys() == set()
