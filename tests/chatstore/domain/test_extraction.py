"""`makemessages` finds every template of a text, and errors that people read have one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
MODULE = "chatstore.domain.texts"
TEMPLATES = {"gettext_lazy": (0,), "gettext_noop": (0,), "pgettext_lazy": (0, 1), "ngettext_lazy": (0, 1)}
"""Arguments that must be literal strings."""

NOT_SHOWN = (
    "chatstore/domain/discord_export.py",
    "chatstore/domain/members.py",
    "chatstore/domain/message_limits.py",
    "chatstore/domain/reports.py",
    "chatstore/management/",
    "chatstore/operations/coordination/channel_lease.py",
    "chatstore/operations/gateway/members.py",
    "chatstore/operations/gateway/messages.py",
    "chatstore/operations/gateway/reports.py",
    "chatstore/operations/importing/",
    "moderation/management/",
)
"""Modules whose errors only commands, logs and callers of the gateway read."""

ERRORS = frozenset(
    {
        "BadInput",
        "Forbidden",
        "NodeUnreachable",
        "NotFound",
        "PlanRejected",
        "RepairFailed",
        "StoreUnavailable",
        "TooManyTombstones",
    }
)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for app in ("chatstore", "moderation"):
        for path in sorted((ROOT / app).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))


def names_in(tree: ast.Module) -> dict[str, str]:
    """Return the functions of the module of texts by the names that a module imports them under."""
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == MODULE)
    return {alias.asname or alias.name: alias.name for node in imports for alias in node.names}


def test_templates_are_literals_with_the_parameters_they_are_given() -> None:
    found = 0
    for path, tree in modules():
        names = names_in(tree)
        for call in calls(tree):
            function = names.get(call.func.id, "")  # type: ignore[attr-defined]
            if function not in TEMPLATES:
                continue
            found += 1
            place = f"{path}:{call.lineno}"
            arguments = [call.args[position] for position in TEMPLATES[function]]
            texts = [one.value for one in arguments if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if path.endswith("purging/controls.py") and not texts:
                # Its templates are marked by `gettext_noop`.
                continue
            assert len(texts) == len(arguments), place
            if function == "gettext_noop" or any(keyword.arg is None for keyword in call.keywords):
                continue
            given = {keyword.arg for keyword in call.keywords} | ({"count"} if function == "ngettext_lazy" else set())
            for text in texts[1:] if function == "pgettext_lazy" else texts:
                assert set(re.findall(r"%\((\w+)\)s", text)) <= given, place
                assert "%" not in re.sub(r"%%|%\(\w+\)s", "", text), place
    assert found > 200


def test_errors_that_people_read_have_a_template() -> None:
    for path, tree in modules():
        if path.startswith(NOT_SHOWN):
            continue
        for call in calls(tree):
            if call.func.id in ERRORS and call.args:  # type: ignore[attr-defined]
                is_bare = isinstance(call.args[0], ast.Constant | ast.JoinedStr)
                assert not is_bare, f"{path}:{call.lineno} is not translated"


def test_no_function_that_uses_the_short_name_of_gettext_assigns_it() -> None:
    """A loop over `_` would hide the function of that name, which only fails when the error is raised."""
    for path, tree in modules():
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            uses = {type(name.ctx) for name in own_names(function) if name.id == "_"}
            assert uses != {ast.Load, ast.Store}, f"{path}: {function.name}"


def own_names(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names in a function's own scope; comprehensions and nested functions have scopes of their own."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name):
            yield child
        if not isinstance(
            child, (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        ):
            yield from own_names(child)
