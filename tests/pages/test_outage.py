"""An unresponsive store is reported; pages that do not need it keep working."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.errors import StoreUnavailable
from chatstore.models.users import User
from chatstore.store import cassandra
from moderation.domain.states import PurgeState
from moderation.models import Purge
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


@pytest.fixture
def _store_is_unavailable(previewed: PreviewedPurge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the driver's error without stopping the servers that other tests use."""

    def fail(*args: object, **kwargs: object) -> None:
        raise StoreUnavailable("Cassandra does not answer.")

    for name in ("submit", "execute", "execute_window", "iterate"):
        monkeypatch.setattr(cassandra, name, fail)


@pytest.mark.usefixtures("_store_is_unavailable")
def test_a_timeline_answers_503_with_an_explanation(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    response = sign_in(mona).get(f"/channels/{previewed.channel.pk}/")
    assert response.status_code == 503
    assert response["Retry-After"] == "10"
    assert re.search(r"Cassandra does not answer.\s+Nothing is lost", response.content.decode())
    assert "Content-Security-Policy" in response


@pytest.mark.usefixtures("_store_is_unavailable")
def test_home_and_a_purge_are_shown_without_it(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    home = client.get("/")
    assert home.status_code == 200
    assert "listed by name only" in home.content.decode()
    assert "messages can be neither read nor deleted. Purges and previews wait" in home.content.decode()
    purge = client.get(f"/purges/{previewed.purge.pk}/")
    assert purge.status_code == 200
    page = purge.content.decode()
    assert "Delete 6 messages" in page
    assert "can’t be shown right now" in page


@pytest.mark.usefixtures("_store_is_unavailable")
def test_home_says_so_before_its_lists_and_names_them_truly(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    home = sign_in(mona).get("/").content.decode()
    warning = home.index('<p class="notice error">')
    assert warning < home.index("listed by name only") < home.index("Needs attention") < home.index('id="all-channels"')
    assert home.count("listed by name only") == 1
    for wrong in ("Channels by recent activity", "Other channels by server", "the most active channels"):
        assert wrong not in home
    assert previewed.channel.name in home


def test_purges_at_work_wait_for_it_on_home(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn, request: pytest.FixtureRequest
) -> None:
    Purge.objects.filter(pk=previewed.purge.pk).update(state=PurgeState.RUNNING)
    client, waits = sign_in(mona), "waiting for the message store"
    assert waits not in client.get("/").content.decode()
    request.getfixturevalue("_store_is_unavailable")
    home = client.get("/").content.decode()
    line = home[home.index(f'href="/purges/{previewed.purge.pk}/"') :].split("</li>")[0]
    assert re.findall(r'class="chip[^"]*">([^<]+)<', line) == [waits]


@pytest.mark.usefixtures("_store_is_unavailable")
def test_the_health_of_the_cluster_begins_with_it(otto: User, sign_in: SignIn) -> None:
    page = sign_in(otto).get("/health/").content.decode()
    warning = page.index('<p class="notice error">')
    assert warning < page.index("shown again as soon as one does") < page.index('id="findings"')
    assert page.count('<p class="notice error">') == 1
    assert "responds" not in page


@pytest.mark.usefixtures("_store_is_unavailable")
def test_composing_still_works_but_excluding_does_not(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/"
    composed = client.get(f"/channels/{previewed.channel.pk}/delete/", {"words": "coins"})
    assert composed.status_code == 200
    assert f"All messages in {previewed.channel.full_name} containing the word “coins”" in composed.content.decode()
    listed = client.get(f"{path}messages/")
    assert listed.status_code == 200
    assert "The messages can’t be shown right now" in listed.content.decode()
    fields = {
        "manifest_hash": bytes(previewed.purge.manifest_hash or b"").hex(),
        "message_id": str(previewed.victor_ids[0]),
    }
    assert client.post(f"{path}exclude/", fields).status_code == 503
    previewed.purge.refresh_from_db()
    assert previewed.purge.manifest == 6
