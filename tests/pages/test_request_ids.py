"""A request has an id: in its answer, in the audit log, in the lines of the log, and in the work that it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django_guid import clear_guid, set_guid
from pytest_django import Settings

from chatstore.models.users import User
from moderation.models import AuditEntry
from tests.moderation.channels import by_victor, confirm, make_channel, old_ids, preview, write
from tests.moderation.incident.processes import (
    enqueue_workers,
    pause_purges_of_other_tests,
    running_worker,
    wait_until_done,
)
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


def test_each_answer_names_the_id_of_its_request(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    first, second = (client.get("/purges/")["X-Request-ID"] for _ in range(2))
    assert len(first) == len(second) == 32
    assert first != second


def test_the_id_of_a_trusted_proxy_is_kept_if_it_is_a_uuid(mona: User, sign_in: SignIn, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = 1
    client, given = sign_in(mona), uuid.uuid4().hex
    assert client.get("/purges/", headers={"x-request-id": given})["X-Request-ID"] == given
    forged = "id\u0009with spaces"
    assert client.get("/purges/", headers={"x-request-id": forged})["X-Request-ID"] != forged


def test_an_id_that_a_client_sends_is_ignored(mona: User, sign_in: SignIn) -> None:
    given = uuid.uuid4().hex
    assert sign_in(mona).get("/purges/", headers={"x-request-id": given})["X-Request-ID"] != given


def test_an_audit_entry_names_the_request_that_acted(previewed: PreviewedPurge, sign_in: SignIn) -> None:
    answer = sign_in(previewed.moderator).post(f"/purges/{previewed.purge.pk}/discard/")
    entry = AuditEntry.objects.get(purge=previewed.purge, action="preview_discarded")
    assert entry.request_id == answer["X-Request-ID"]


def test_a_line_of_the_log_can_be_json_with_the_id() -> None:
    program = (
        "import django; django.setup()\n"
        "import logging; from django_guid import set_guid\n"
        "set_guid('0123456789abcdef'); logging.getLogger('chatstore.test').warning('%d messages', 5)"
    )
    environment = os.environ | {"LOG_FORMAT": "json", "DJANGO_SETTINGS_MODULE": "chatstore.settings"}
    line = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=settings.BASE_DIR, capture_output=True, check=True
    ).stderr
    record = json.loads(line)
    assert (record["name"], record["message"]) == ("chatstore.test", "5 messages")
    assert record["request_id"] == "0123456789abcdef"


@pytest.mark.slow
@pytest.mark.alone
def test_what_a_worker_did_names_the_request_that_woke_it_up(mona: User, tmp_path: Path) -> None:
    pause_purges_of_other_tests()
    channel = make_channel()
    write(channel, old_ids(3))
    purge, request_id = confirm(mona, preview(mona, by_victor(channel))), uuid.uuid4().hex
    with running_worker(tmp_path) as log:
        set_guid(request_id)
        try:
            enqueue_workers(purge.pk)
        finally:
            clear_guid()
        wait_until_done(purge.pk)
        assert f"{request_id}: " in log.read_text()
    assert AuditEntry.objects.get(purge=purge, action="channel_purged").request_id == request_id
