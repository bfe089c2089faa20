"""A finding is opened once, updated, and closed when its cause is gone."""

import uuid

import pytest
from django.db.models import Q

from chatstore.domain.runs import Severity
from chatstore.models import Finding
from chatstore.operations.findings.records import Problem, open_finding, open_findings, sync_findings

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind() -> str:
    return f"kind-{uuid.uuid4().hex[:8]}"


def test_a_repeated_observation_is_one_finding(kind: str) -> None:
    first = open_finding(kind, "5:7", Problem(Severity.WARNING, "1,200 tombstones"))
    again = open_finding(kind, "5:7", Problem(Severity.CRITICAL, "60,000 tombstones", {"tombstones": 60_000}))
    assert first.pk == again.pk
    found = Finding.objects.get(pk=first.pk)
    assert (found.severity, found.summary, found.details) == (
        Severity.CRITICAL,
        "60,000 tombstones",
        {"tombstones": 60_000},
    )


def test_a_resolved_finding_that_recurs_is_a_new_one(kind: str) -> None:
    sync_findings(kind, {name: Problem(Severity.WARNING, name) for name in ("a", "b")})
    sync_findings(kind, {"b": Problem(Severity.WARNING, "b")})
    assert [f.subject for f in open_findings() if f.kind == kind] == ["b"]
    sync_findings(kind, {})
    assert [f.subject for f in open_findings() if f.kind == kind] == []
    open_finding(kind, "a", Problem(Severity.WARNING, "a"))
    assert Finding.objects.filter(kind=kind, subject="a").count() == 2


def test_a_check_of_some_subjects_closes_only_findings_of_these(kind: str) -> None:
    sync_findings(kind, {name: Problem(Severity.WARNING, name) for name in ("5:7", "5:8", "6:7")})
    sync_findings(kind, {"5:8": Problem(Severity.WARNING, "5:8")}, among=Q(subject__startswith="5:"))
    assert sorted(f.subject for f in open_findings() if f.kind == kind) == ["5:8", "6:7"]


def test_the_worst_finding_is_first(kind: str) -> None:
    for name, severity in (("warning", Severity.WARNING), ("critical", Severity.CRITICAL)):
        open_finding(kind, name, Problem(severity, name))
    assert [f.subject for f in open_findings() if f.kind == kind] == ["critical", "warning"]
