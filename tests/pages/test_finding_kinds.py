"""Every kind of finding has an action, or a link to the page on which it can be resolved."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from chatstore.domain.runs import Severity
from chatstore.models import Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import HEAVY_BUCKET, MISSING_SURVIVORS, SLOW_PAGE
from chatstore.operations.findings.records import WRONG_SUMS, Problem, open_finding
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.monitoring.checks import BROKEN_SCHEDULE, FAILED_RUN, HEARTBEAT_MISSING, MISSED_RUN, NODE_DOWN
from chatstore.operations.repair_status.repair_clock import LATE_REPAIR
from moderation.operations.access.audit_archive import AUDIT_RETENTION
from moderation.operations.access.audit_monitoring import CHANGEABLE_AUDIT_LOG, UNLINKED_ENTRIES
from moderation.operations.purging.approvals import APPROVAL_REQUEST
from moderation.operations.purging.overdue import OVERDUE_PREVIEW
from moderation.operations.purging.stuck_check import STUCK_PURGE
from moderation.operations.raids.detection import RAID
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]

ROOT = Path(__file__).parents[2]

KINDS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    HEAVY_BUCKET: ("{channel}:-3", {"tombstones": 61_204}, ["Repair", "Open bucket"]),
    SLOW_PAGE: ("{channel}", {"channel": "{channel}", "page_us": 148_000}, ["View channel health"]),
    MISSING_SURVIVORS: (
        "{channel}:-3:{purge}.1",
        {"purge": "{purge}"},
        ["Repair", "Open purge", "Open bucket", "Acknowledge"],
    ),
    WRONG_SUMS: ("{purge}", {}, ["Open purge", "Acknowledge"]),
    # The nightly job that deletes authorless rows, as all with a schedule, also runs on request.
    FAILED_RUN: ("authorless", {"job": "authorless", "run": "{run}"}, ["Run now", "Open run"]),
    MISSED_RUN: ("probe", {"job": "probe"}, ["Run now", "Open job"]),
    BROKEN_SCHEDULE: ("expire", {"job": "expire"}, ["Open job"]),
    HEARTBEAT_MISSING: ("", {}, ["Open maintenance"]),
    NODE_DOWN: ("127.0.0.2", {}, ["View nodes"]),
    LATE_REPAIR: ("messages", {}, ["Repair now", "View repair clocks"]),
    STUCK_PURGE: ("{purge}", {"is_rewrite": False}, ["Open purge"]),
    OVERDUE_PREVIEW: ("{purge}:expire_preview", {}, ["Open purge"]),
    APPROVAL_REQUEST: ("{purge}:7", {}, ["Open purge"]),
    RAID: ("{channel}", {"channel": "{channel}", "since_ms": 0, "messages": 9, "accounts": 3}, ["Open channel"]),
    UNLINKED_ENTRIES: ("audit", {}, ["Open maintenance"]),
    AUDIT_RETENTION: ("audit", {}, ["Open job"]),
    # Only the owner of the database can resolve it, and operators do not read the audit log.
    CHANGEABLE_AUDIT_LOG: ("audit", {}, []),
}
"""Subject and details of a finding of each kind, and what an operator is offered."""

FOR_ADMINISTRATORS = {
    RAID: ["Review and clear"],
    UNLINKED_ENTRIES: ["Open maintenance", "Open audit log"],
    CHANGEABLE_AUDIT_LOG: ["Open audit log"],
}
"""What administrators are offered instead."""


@pytest.fixture(autouse=True)
def _no_open_findings() -> Iterator[None]:
    Finding.objects.open().update(closed_at=postgres_now())
    yield
    Finding.objects.open().update(closed_at=postgres_now())


def kinds_in_code() -> set[str]:
    """Return the kinds with which findings are opened anywhere in the applications."""
    found = set()
    for path in [*ROOT.glob("chatstore/**/*.py"), *ROOT.glob("moderation/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in {"open_finding", "sync_findings"}:
                kind = node.args[0]
                assert isinstance(kind, ast.Name), f"{path}: the kind is not a constant"
                module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
                found.add(getattr(module, kind.id))
    return found


def test_every_kind_is_listed_here() -> None:
    assert kinds_in_code() == KINDS.keys()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_has_an_action_or_a_link(
    kind: str, otto: User, ada: User, sign_in: SignIn, previewed: PreviewedPurge
) -> None:
    now = postgres_now()
    subject, details, for_operators = KINDS[kind]
    JobRun.objects.open().filter(job__in=("authorless", "probe", "repair")).delete()
    run = JobRun.objects.create(job="authorless", state="failed", due_at=now, started_at=now, ended_at=now)
    # No repair can have covered a delete that is sent from now on.
    note_deletes(previewed.channel.pk, -3, 1)
    ids = {"channel": str(previewed.channel.pk), "purge": str(previewed.purge.pk), "run": str(run.pk)}
    filled = {name: value.format(**ids) if isinstance(value, str) else value for name, value in details.items()}
    open_finding(kind, subject.format(**ids), Problem(Severity.WARNING, "Something is wrong", filled))
    for user, offered in ((otto, for_operators), (ada, FOR_ADMINISTRATORS.get(kind, for_operators))):
        client = sign_in(user)
        (item,) = re.findall(r'<li class="finding">.*?</li>', client.get("/health/").content.decode(), re.DOTALL)
        links = dict(re.findall(r'<a href="([^"]+)">([^<]+)<', item))
        buttons = [text.strip() for text in re.findall(r"<button[^>]*>([^<]+)<", item)]
        assert sorted([*links.values(), *buttons]) == sorted(offered)
        for url in links:
            assert client.get(url).status_code == 200, url
    run.delete()


def test_a_failed_job_is_run_from_its_finding_of_an_older_version(otto: User, sign_in: SignIn) -> None:
    JobRun.objects.open().filter(job="authorless", subject="").delete()
    open_finding(FAILED_RUN, "authorless", Problem(Severity.WARNING, "Authorless rows failed"))
    html = sign_in(otto).get("/").content.decode()
    assert 'action="/maintenance/jobs/authorless/run/"' in html
    assert re.search(r'<a href="/maintenance/jobs/authorless/">\s*Open job', html)
