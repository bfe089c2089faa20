"""Evidence of a purge: the archive has everything, can be checked by itself, and is recorded."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import secrets
import tracemalloc
import zipfile
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.packing import hash_bucket
from moderation.models import AuditEntry, Purge
from moderation.operations.access.audit_chain import link_entries
from moderation.operations.erasure.execution import erase_purge
from moderation.views.zip_stream import FLUSH_BYTES, ZipStream
from tests.moderation.channels import confirm, everything, make_channel, old_ids, preview, purge_now, write
from tests.moderation.erasures import finished_purge, request_and_approve

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    return make_channel()


def export(client: Client, purge: Purge) -> tuple[bytes, dict[str, str]]:
    """Return the archive and its files."""
    response = client.get(f"/purges/{purge.pk}/evidence.zip")
    assert response.status_code == 200, response.content
    archive = response.getvalue()
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.testzip() is None
        return archive, {name: opened.read(name).decode() for name in opened.namelist()}


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_it_has_manifest_content_plan_and_audit_log(mona: User, lena: User, sign_in: SignIn, channel: Channel) -> None:
    purge = finished_purge(mona, channel)
    while link_entries():
        pass
    _, files = export(sign_in(lena), purge)
    ids = [str(i) for i in old_ids(20)]
    assert [row["message_id"] for row in rows_of(files["manifest.csv"])] == ids
    assert {row["outcome"] for row in rows_of(files["manifest.csv"])} == {"deleted"}
    copies = lines_of(files["content.jsonl"])
    assert [(copy["message_id"], copy["content"]) for copy in copies] == [(i, f"hello {i}") for i in ids]
    assert [row["content"] for row in rows_of(files["content.csv"])] == [f"hello {i}" for i in ids]
    (planned,) = lines_of(files["plan.jsonl"])
    assert (planned["count"], sum(step["deleted"] for step in planned["steps"])) == (20, 20)
    facts = json.loads(files["purge.json"])
    assert (facts["moderator"], facts["reason"]) == (mona.get_username(), "a test")
    assert (facts["totals"]["deleted"], facts["has_content"]) == (20, True)
    entries = lines_of(files["audit.jsonl"])
    assert {"purge_confirmed", "purge_finished", "evidence_exported"} <= {entry["action"] for entry in entries}
    confirmed = next(entry for entry in entries if entry["action"] == "purge_confirmed")
    assert len(confirmed["hash"]) == 64
    assert [row["id"] for row in rows_of(files["audit.csv"])] == [entry["id"] for entry in entries]


def test_the_manifest_hash_follows_from_the_manifest(mona: User, lena: User, sign_in: SignIn, channel: Channel) -> None:
    ids = sorted([*old_ids(5), *old_ids(5, buckets_ago=6)])
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    _, files = export(sign_in(lena), purge)
    keys = [
        (int(row["channel_id"]), int(row["bucket"]), int(row["message_id"])) for row in rows_of(files["manifest.csv"])
    ]
    assert len(keys) == 10
    buckets = groupby(keys, key=lambda key: key[:2])
    hashes = [hash_bucket(channel_id, [key[2] for key in found]) for (channel_id, _), found in buckets]
    assert hashlib.sha256(b"".join(hashes)).hexdigest() == json.loads(files["purge.json"])["manifest_hash"]
    assert [line["manifest_hash"] for line in lines_of(files["plan.jsonl"])] == [one.hex() for one in hashes]


def test_the_list_of_hashes_and_the_audit_log_prove_the_archive(
    mona: User, lena: User, sign_in: SignIn, channel: Channel
) -> None:
    purge = finished_purge(mona, channel)
    archive, files = export(sign_in(lena), purge)
    sums = files.pop("SHA256SUMS").splitlines()
    assert sums == [f"{hashlib.sha256(text.encode()).hexdigest()}  {name}" for name, text in files.items()]
    began, sent = AuditEntry.objects.filter(purge=purge, action__startswith="evidence_").order_by("id")
    assert (began.action, began.actor) == ("evidence_exported", lena)
    counts = {"messages": 20, "copies": 20}
    assert sent.details == {"sha256": hashlib.sha256(archive).hexdigest(), **counts, "address": "127.0.0.1"}


def test_no_cell_is_a_formula(mona: User, lena: User, sign_in: SignIn, channel: Channel) -> None:
    ids = old_ids(2)
    write(channel, ids, content='=HYPERLINK("https://evil.example")')
    _, files = export(sign_in(lena), purge_now(mona, everything(channel)))
    assert all(row["content"].startswith("'=HYPERLINK") for row in rows_of(files["content.csv"]))
    assert all(copy["content"].startswith("=HYPERLINK") for copy in lines_of(files["content.jsonl"]))


def test_an_interrupted_download_is_recorded_as_begun_only(
    mona: User, lena: User, sign_in: SignIn, channel: Channel
) -> None:
    purge = finished_purge(mona, channel)
    response = sign_in(lena).get(f"/purges/{purge.pk}/evidence.zip")
    next(iter(response))
    response.close()
    actions = AuditEntry.objects.filter(purge=purge, action__startswith="evidence_").values_list("action", flat=True)
    assert list(actions) == ["evidence_exported"]


def test_erased_content_is_in_no_archive(mona: User, lena: User, ada: User, sign_in: SignIn, channel: Channel) -> None:
    purge = finished_purge(mona, channel)
    request_and_approve(purge, lena, ada)
    for _ in range(2):
        _, files = export(sign_in(lena), purge)
        assert (files["content.jsonl"], len(rows_of(files["manifest.csv"]))) == ("", 20)
        assert "were permanently deleted" in files["README.txt"]
        erase_purge(purge.pk)


def test_it_is_offered_on_the_receipt_and_before_an_erasure(
    mona: User, lena: User, ada: User, sign_in: SignIn, channel: Channel
) -> None:
    purge = finished_purge(mona, channel)
    link = f'href="/purges/{purge.pk}/evidence.zip"'
    shown = sign_in(lena).get(f"/purges/{purge.pk}/").content.decode()
    assert shown.count(link) == 2
    assert "Export evidence now" in shown
    assert link not in sign_in(mona).get(f"/purges/{purge.pk}/").content.decode()
    request_and_approve(purge, lena, ada)
    assert "Export evidence now" not in sign_in(lena).get(f"/purges/{purge.pk}/").content.decode()


def test_it_is_refused_before_the_purge_has_ended_and_without_the_right(
    mona: User, lena: User, otto: User, sign_in: SignIn, channel: Channel
) -> None:
    write(channel, old_ids(3))
    purge = preview(mona, everything(channel))
    for _ in range(2):
        assert sign_in(lena).get(f"/purges/{purge.pk}/evidence.zip").status_code == 400
        confirm(mona, purge)
    for user in (mona, otto):
        assert sign_in(user).get(f"/purges/{purge.pk}/evidence.zip").status_code == 403
    assert sign_in(lena).get("/purges/7/evidence.zip").status_code == 404
    assert not AuditEntry.objects.filter(purge=purge, action="evidence_exported").exists()


def test_memory_does_not_grow_with_the_archive() -> None:
    archive = ZipStream()
    tracemalloc.start()
    try:
        sizes = [len(part) for part in archive.add("large.txt", (secrets.token_hex(12_000) for _ in range(1_000)))]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 10_000_000
    assert max(sizes) < 4 * FLUSH_BYTES
    assert peak < 2_000_000
