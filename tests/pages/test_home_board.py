"""Home shows operators a board: nodes, repair clocks, worst partitions and jobs, as the pages that it links to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from chatstore.domain.runs import RunState, Severity
from chatstore.models import Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import MISSING_SURVIVORS
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.store import cassandra
from moderation.presentation.formats import format_datetime

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _no_open_findings() -> Iterator[None]:
    Finding.objects.filter(closed_at=None).update(closed_at=postgres_now())
    yield
    Finding.objects.filter(closed_at=None).update(closed_at=postgres_now())


def part(page: str, name: str) -> str:
    """Return a section of the page by the id of its heading."""
    section = re.search(rf'<section class="card[^"]*" aria-labelledby="{name}">.*?</section>', page, re.DOTALL)
    assert section, name
    return section[0]


def test_deleting_messages_is_offered_beside_the_search_and_not_among_what_needs_attention(
    mona: User, sign_in: SignIn
) -> None:
    page = sign_in(mona).get("/").content.decode()
    attention = part(page, "attention")
    assert 'href="/delete/"' not in attention
    assert re.search(r'href="/delete/"\s*>Delete messages …</a>', page.split(attention)[0])


def test_each_node_has_its_state_and_load(otto: User, sign_in: SignIn) -> None:
    client = sign_in(otto)
    board, health = (client.get(path).content.decode() for path in ("/", "/health/"))
    nodes = part(board, "board-nodes")
    addresses = [address for address, _, _ in cassandra.hosts()]
    assert addresses
    for address in addresses:
        assert address in nodes
    chips = re.findall(r'<span class="chip[^"]*">[^<]*</span>', nodes)
    assert chips == re.findall(r'<span class="chip[^"]*">[^<]*</span>', part(health, "nodes"))
    assert "on disk" in nodes


def test_a_clock_is_a_gauge_with_words_beside_it(otto: User, sign_in: SignIn) -> None:
    client = sign_in(otto)
    board, health = (client.get(path).content.decode() for path in ("/", "/health/"))
    clocks = part(board, "board-clocks")
    assert clocks.index(">messages</b>") < clocks.index('class="chip')
    assert clocks.count("<svg") == clocks.count('class="chip') >= 1
    assert re.findall(r'<span class="chip[^"]*">[^<]*</span>', clocks)[0] in part(health, "clocks")
    assert "style=" not in clocks


def test_a_job_has_its_next_run_and_its_last_result(otto: User, sign_in: SignIn) -> None:
    client, now = sign_in(otto), postgres_now()
    name = re.findall(r'"/maintenance/jobs/([\w-]+)/"', part(client.get("/").content.decode(), "board-jobs"))[0]
    run = JobRun.objects.create(
        job=name, state=RunState.FAILED, due_at=now, started_at=now, ended_at=now, error="node 3 did not answer"
    )
    jobs = part(client.get("/").content.decode(), "board-jobs")
    assert f'"/maintenance/runs/{run.pk}/"' in jobs
    assert '<span class="chip failed">failed</span>' in jobs
    assert "node 3 did not answer" in jobs
    assert f">{format_datetime(now)} (" in jobs
    run.delete()


def test_a_finding_is_acknowledged_without_leaving_home(otto: User, sign_in: SignIn) -> None:
    loss = open_finding(MISSING_SURVIVORS, "5:7", Problem(Severity.CRITICAL, "A message is missing"))
    client = sign_in(otto)
    findings = part(client.get("/").content.decode(), "findings")
    (fields,) = re.findall(r"<form.*?</form>", findings, re.DOTALL)
    assert 'name="at_home"' in fields
    answer = client.post(f"/findings/{loss.pk}/acknowledge/", {"at_home": "1"})
    assert answer["Location"] == "/"
    loss.refresh_from_db()
    assert loss.closed_at is not None


def test_an_administrator_has_purges_before_the_board_and_an_operator_after_it(
    ada: User, otto: User, sign_in: SignIn
) -> None:
    places = {}
    for user in (ada, otto):
        page = sign_in(user).get("/").content.decode()
        places[user] = [page.index(text) for text in ('id="findings"', 'id="board-nodes"', "purge-lists")]
    findings, board, purges = places[ada]
    assert findings < purges < board
    findings, board, purges = places[otto]
    assert findings < board < purges


def test_moderators_have_no_board(mona: User, sign_in: SignIn) -> None:
    assert "board-nodes" not in sign_in(mona).get("/").content.decode()
