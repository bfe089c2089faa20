"""An unresponsive store is reported; pages that do not need it keep working."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatstore.domain.errors import StoreUnavailable
from chatstore.store import cassandra
from tests.pages.conftest import Place

SignIn = Callable[[User], Client]


@pytest.fixture
def _store_is_away(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the driver's error without stopping the servers that other tests use."""

    def fail(*args: object, **kwargs: object) -> None:
        raise StoreUnavailable("Cassandra does not answer.")

    for name in ("submit", "execute", "execute_window", "iterate"):
        monkeypatch.setattr(cassandra, name, fail)


@pytest.mark.usefixtures("_store_is_away")
def test_a_timeline_answers_503_with_words(place: Place, mona: User, sign_in: SignIn) -> None:
    response = sign_in(mona).get(f"/channels/{place.channel.pk}/")
    assert response.status_code == 503
    assert response["Retry-After"] == "10"
    assert re.search(r"Cassandra does not answer.\s+Nothing is lost", response.content.decode())
    assert "Content-Security-Policy" in response


@pytest.mark.usefixtures("_store_is_away")
def test_home_and_a_purge_are_shown_without_it(place: Place, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    home = client.get("/")
    assert home.status_code == 200
    assert "listed by name only" in home.content.decode()
    purge = client.get(f"/purges/{place.purge.pk}/")
    assert purge.status_code == 200
    page = purge.content.decode()
    assert "Delete 6 messages" in page
    assert "can’t be shown right now" in page


@pytest.mark.usefixtures("_store_is_away")
def test_one_can_go_on_composing_but_nothing_is_unticked(place: Place, mona: User, sign_in: SignIn) -> None:
    client, path = sign_in(mona), f"/purges/{place.purge.pk}/"
    composed = client.get(f"/channels/{place.channel.pk}/remove/", {"words": "coins"})
    assert composed.status_code == 200
    assert "All messages in #room containing the words “coins”" in composed.content.decode()
    listed = client.get(f"{path}messages/")
    assert listed.status_code == 200
    assert "The messages can’t be shown right now" in listed.content.decode()
    fields = {"digest": bytes(place.purge.digest or b"").hex(), "message_id": str(place.victors[0])}
    assert client.post(f"{path}untick/", fields).status_code == 503
    place.purge.refresh_from_db()
    assert place.purge.manifest == 6
