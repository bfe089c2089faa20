"""Each act of a request is in the audit log with the network address that it came from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from chatstore.models.users import User
from moderation.models import AuditEntry
from moderation.operations.holds import HoldRequest, place_hold
from tests.moderation.channels import everything, make_channel, old_ids, purge_now, write
from tests.pages.conftest import PreviewedPurge
from tests.pages.second_factors import set_up

SignIn = Callable[[User], Client]

HOME, ELSEWHERE = "198.51.100.7", "203.0.113.9"


def client_from(account: User, address: str) -> Client:
    client = Client(REMOTE_ADDR=address)
    client.force_login(account)
    return client


def test_a_purge_is_confirmed_with_the_address(previewed: PreviewedPurge) -> None:
    purge = previewed.purge
    form = {"reason": "spam", "manifest_hash": bytes(purge.manifest_hash or b"").hex()}
    client_from(previewed.moderator, HOME).post(f"/purges/{purge.pk}/confirm/", form)
    assert AuditEntry.objects.get(purge=purge, action="purge_confirmed").details["address"] == HOME


def test_what_follows_without_a_request_has_none(ada: User, previewed: PreviewedPurge) -> None:
    client_from(previewed.moderator, HOME).post(f"/purges/{previewed.purge.pk}/discard/")
    hold = place_hold(HoldRequest(channel=str(previewed.channel.pk)), reason="appeal", actor=ada)
    assert "address" not in AuditEntry.objects.get(action="hold_placed", details__hold=str(hold.pk)).details


def test_a_command_has_none(mona: User) -> None:
    set_up(mona)
    call_command("second_factor_reset", mona.username)
    entry = AuditEntry.objects.get(action="second_factor_reset", details__account=mona.username)
    assert entry.details["by"].startswith("command line (")
    assert "address" not in entry.details


def test_the_address_is_the_one_that_the_trusted_proxy_saw(previewed: PreviewedPurge, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = 1
    client_from(previewed.moderator, HOME).post(
        f"/purges/{previewed.purge.pk}/discard/", headers={"x-forwarded-for": f"192.0.2.1, {ELSEWHERE}"}
    )
    entry = AuditEntry.objects.get(purge=previewed.purge, action="preview_discarded")
    assert entry.details["address"] == ELSEWHERE


def test_reading_a_saved_copy_from_another_address_is_recorded_again(mona: User, lena: User) -> None:
    channel, ids = make_channel(), old_ids(5)
    write(channel, ids)
    purge_now(mona, everything(channel))
    for address in (HOME, HOME, ELSEWHERE):
        assert client_from(lena, address).get(f"/channels/{channel.pk}/{ids[3]}/").status_code == 200
    entries = AuditEntry.objects.filter(actor=lena, action="copy_read").order_by("id")
    assert [entry.details["address"] for entry in entries] == [HOME, ELSEWHERE]


@pytest.mark.parametrize("address", ["fe80::1%eth0", "fe80::1%25eth0"])
def test_a_link_local_address_is_recorded_without_its_interface(address: str, mona: User) -> None:
    Client(REMOTE_ADDR=address).post("/sign-in/", {"username": mona.username, "password": "wrong"})
    entry = AuditEntry.objects.filter(action="sign_in_failed", details__account=mona.username).get()
    assert entry.details["address"] == "fe80::1"
