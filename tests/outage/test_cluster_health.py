"""A node that is down is named on the page, a repair refuses to start, and both open findings."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.runs import RunState
from chatstore.models import Finding
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import request_run, work_on_run
from chatstore.operations.monitoring.checks import check_nodes, check_runs
from chatstore.store import nodes
from tests.chatstore.channels import fresh_id
from tests.outage.conftest import DOWN

SignIn = Callable[[User], Client]


pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.usefixtures("outage")]


def test_the_page_names_the_node_and_shows_its_figures_as_unknown(otto: User, sign_in: SignIn) -> None:
    html = re.sub(r"\s+", " ", sign_in(otto).get("/health/").content.decode())
    assert "1 of 2 nodes is up" in html
    node = re.search(rf'<li class="node">(?:(?!</li>).)*{DOWN}</b>.*?</li>', html)
    assert node
    assert '<span class="chip critical">down</span>' in node[0]
    assert f"Node {DOWN} does not answer." in node[0]
    assert "unknown" in node[0]
    assert "The list of this node is missing." in html


def test_a_repair_refuses_to_start_and_findings_open(otto: User) -> None:
    run = work_on_run(request_run("repair", actor=otto).pk)
    assert run is not None
    assert (run.state, run.error) == (
        RunState.FAILED,
        f"Node {DOWN} is down, and a repair needs every replica. Nothing was started.",
    )
    check_runs(postgres_now())
    check_nodes(postgres_now())
    failed = Finding.objects.get(kind="failed run", subject="repair", closed_at=None)
    assert f"Node {DOWN} is down" in failed.summary
    assert Finding.objects.filter(kind="node down", subject=DOWN, closed_at=None).exists()
    run.delete()
    check_runs(postgres_now())


def test_a_bucket_cannot_be_measured_and_the_run_names_the_node(otto: User) -> None:
    run = work_on_run(request_run("measure", actor=otto, subject=f"{fresh_id()}:1").pk)
    assert run is not None
    assert run.state == RunState.FAILED
    assert f"Node {DOWN} is down and is a replica of this bucket." in run.error


def test_gossip_reports_a_dead_node_as_normal() -> None:
    assert {node.address: (node.is_up, node.gossip) for node in nodes.read_nodes()}[DOWN] == (False, "normal")
