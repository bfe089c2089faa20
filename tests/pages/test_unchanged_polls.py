"""The polls of a purge's page and of its panel cost next to nothing while nothing has changed."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.models.users import User
from moderation.models import Purge
from moderation.operations.purging.controls import pause_purge, resume_purge
from moderation.store.pace import Pace
from moderation.views import purge_page
from tests.conftest import make_user
from tests.moderation.channels import claim
from tests.moderation.scattered import Scattered, make_scattered
from tests.moderation.steps import finish_step, quarantine_step, stamp_step


@pytest.fixture(autouse=True)
def _no_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge_page, "POLL_REFRESH_SECONDS", 10**9)
    monkeypatch.setattr(purge_page, "PANEL_REFRESH_SECONDS", 10**9)


@pytest.fixture
def waiting(mona: User) -> Scattered:
    return make_scattered(mona)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def poll_url(html: str) -> str:
    found = re.search(r'hx-get="(/purges/\d+/(?:live|panel)/\?version=[^"]+)"', html)
    assert found
    return found[1]


@pytest.mark.parametrize("page", ["", "panel/"])
def test_an_unchanged_purge_answers_204_and_reads_no_step_and_no_channel(
    page: str, mona: User, waiting: Scattered
) -> None:
    client = signed_in(mona)
    url = poll_url(client.get(f"/purges/{waiting.purge.pk}/{page}").content.decode())
    with CaptureQueriesContext(connection) as captured:
        response = client.get(url, headers={"HX-Request": "true"})
    assert response.status_code == 204
    read = [query["sql"] for query in captured if "step" in query["sql"] or "chatstore_channel" in query["sql"]]
    assert not read


def test_the_version_of_one_account_is_not_that_of_another(mona: User, waiting: Scattered) -> None:
    url = poll_url(signed_in(mona).get(f"/purges/{waiting.purge.pk}/panel/").content.decode())
    assert signed_in(make_user("lena", group="moderators")).get(url).status_code == 200


def test_a_counted_step_is_shown_by_the_next_poll(mona: User, waiting: Scattered) -> None:
    client = signed_in(mona)
    url = poll_url(client.get(f"/purges/{waiting.purge.pk}/").content.decode())
    step = claim(waiting.purge)
    kept = quarantine_step(step, pace=Pace(10_000))
    stamp_step(step, kept)
    url = poll_url(client.get(url).content.decode())
    assert client.get(url).status_code == 204
    finish_step(step, pace=Pace(10_000), quarantined=kept)
    response = client.get(url)
    assert response.status_code == 200
    assert "5 of 60" in " ".join(re.sub(r"<[^>]*>", " ", response.content.decode()).split())


@pytest.mark.parametrize("page", ["", "panel/"])
def test_what_a_person_does_is_shown_by_the_next_poll(page: str, mona: User, waiting: Scattered) -> None:
    client = signed_in(mona)
    url = poll_url(client.get(f"/purges/{waiting.purge.pk}/{page}").content.decode())
    pause_purge(waiting.purge.pk, moderator=mona)
    assert client.get(url).status_code == 200
    resume_purge(waiting.purge.pk, moderator=mona)
    assert client.get(url).status_code == 200


def test_every_update_makes_a_new_version(mona: User, waiting: Scattered) -> None:
    before = Purge.objects.get(pk=waiting.purge.pk).version
    Purge.objects.filter(pk=waiting.purge.pk).update(wait_reason="for a node")
    Purge.objects.filter(pk=waiting.purge.pk).update()
    assert Purge.objects.get(pk=waiting.purge.pk).version == before + 2
