"""Moderators read of messages and periods; "bucket", "tombstone" and the ten days are for operators."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from chatstore.models.users import User
from moderation.domain.states import StepState
from moderation.models import Step
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, everything, make_channel, old_ids, preview, purge_now, write
from tests.pages.access_table import CASES
from tests.pages.conftest import make_previewed_purge
from tests.pages.pseudo_locale import visible_texts

OPERATORS_WORDS = re.compile(r"bucket|tombstone|partition|gc_grace|\b(ten|10)[- ]days?\b", re.IGNORECASE)

MODERATORS_PAGES = [
    *(
        url
        for route, method, url, statuses in CASES
        if method == "GET" and statuses["mona"] == 200 and not route.startswith("admin/")
    ),
    "channels/{emptied}/",
    "channels/{emptied}/{deleted}/",
    "purges/{done}/",
    "purges/{failed}/",
    "purges/{together}/",
]


@pytest.fixture(scope="module")
def mona() -> User:
    return make_user("mona", group="moderators")


@pytest.fixture(scope="module")
def placeholders(mona: User) -> dict[str, int | str]:
    emptied, ids = make_channel(), old_ids(12)
    write(emptied, ids, author=VICTOR)
    done = purge_now(mona, everything(emptied))
    other = make_channel()
    write(other, old_ids(12), author=VICTOR)
    failed = purge_now(mona, everything(other))
    Step.objects.filter(purge=failed).update(state=StepState.FAILED, error="unexpected", failed=12)
    large = make_channel()
    write(large, old_ids(600), author=VICTOR)
    together = preview(mona, everything(large))
    more = {"emptied": emptied.pk, "deleted": ids[3], "done": done.pk, "failed": failed.pk, "together": together.pk}
    return make_previewed_purge().names | more


@pytest.mark.parametrize("url", MODERATORS_PAGES)
def test_no_page_of_a_moderator_has_a_word_of_the_operators(
    url: str, mona: User, placeholders: dict[str, int | str]
) -> None:
    client = Client()
    client.force_login(mona)
    response = client.get("/" if url == "-" else "/" + url.format(**placeholders))
    assert response.status_code == 200
    assert [text for text in visible_texts(response.content.decode()) if OPERATORS_WORDS.search(text)] == []


def test_an_operator_reads_of_buckets_in_a_preview(placeholders: dict[str, int | str]) -> None:
    client = Client()
    client.force_login(make_user("otto", group="operators"))
    html = client.get(f"/purges/{placeholders['purge']}/").content.decode()
    assert any(OPERATORS_WORDS.search(text) for text in visible_texts(html))
