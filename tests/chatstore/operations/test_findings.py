"""A finding is opened once, updated, and closed when its cause is gone."""

import uuid

import pytest

from chatstore.domain.runs import Severity
from chatstore.models import Finding
from chatstore.operations.findings.records import Found, close_finding, open_finding, open_findings, sync_findings

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind() -> str:
    return f"kind-{uuid.uuid4().hex[:8]}"


def test_what_is_seen_twice_is_one_finding(kind: str) -> None:
    first = open_finding(kind, "5:7", Found(Severity.AMBER, "1,200 tombstones"))
    again = open_finding(kind, "5:7", Found(Severity.RED, "60,000 tombstones", {"tombstones": 60_000}))
    assert first.pk == again.pk
    found = Finding.objects.get(pk=first.pk)
    assert (found.severity, found.words, found.details) == (Severity.RED, "60,000 tombstones", {"tombstones": 60_000})


def test_what_is_not_found_any_more_is_over_and_found_anew_it_is_another(kind: str) -> None:
    sync_findings(kind, {name: Found(Severity.AMBER, name) for name in ("a", "b")})
    sync_findings(kind, {"b": Found(Severity.AMBER, "b")})
    assert [f.subject for f in open_findings() if f.kind == kind] == ["b"]
    assert close_finding(kind, "b")
    assert not close_finding(kind, "b")
    open_finding(kind, "a", Found(Severity.AMBER, "a"))
    assert Finding.objects.filter(kind=kind, subject="a").count() == 2


def test_the_worst_is_first(kind: str) -> None:
    for name, severity in (("amber", Severity.AMBER), ("red", Severity.RED)):
        open_finding(kind, name, Found(severity, name))
    assert [f.subject for f in open_findings() if f.kind == kind] == ["red", "amber"]
