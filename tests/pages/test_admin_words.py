"""The admin shows what other pages do in their words, and names as they are written."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from chatstore.models import ChatUser
from chatstore.models.users import User
from tests.chatstore.channels import fresh_id
from tests.moderation.channels import make_channel
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


def read(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def test_the_selection_of_a_purge_is_a_sentence_with_its_json_folded(
    ada: User, sign_in: SignIn, previewed: PreviewedPurge
) -> None:
    html = read(sign_in(ada), f"/admin/moderation/purge/{previewed.purge.pk}/change/")
    assert re.search(r"All messages by .* in #room \(Harbour\), except pinned", html)
    before, _, folded = html.partition("<details>")
    assert "&quot;where&quot;" not in before
    assert "&quot;where&quot;" in folded.partition("</details>")[0]


def test_a_row_that_was_never_changed_has_a_history_in_own_words(
    ada: User, sign_in: SignIn, previewed: PreviewedPurge
) -> None:
    client = sign_in(ada)
    for path, link in (
        (f"moderation/purge/{previewed.purge.pk}", f"/audit/?purge={previewed.purge.pk}"),
        (f"chatstore/channel/{make_channel().pk}", "/audit/"),
    ):
        html = read(client, f"/admin/{path}/history/")
        assert "No changes were made in the admin." in html
        assert f'href="{link}"' in html
        assert "change history" not in html


def test_passwords_are_described_by_the_sign_ins_that_there_are(ada: User, sign_in: SignIn) -> None:
    html = read(sign_in(ada), "/admin/auth/user/add/")
    assert "the account can sign in by single sign-on only" in html
    assert "LDAP" not in html


def test_names_are_shown_as_they_are_written(ada: User, sign_in: SignIn) -> None:
    user = ChatUser.objects.create(pk=fresh_id(), name="driftwave van der lake")
    client = sign_in(ada)
    for path in (
        f"chatstore/chatuser/?q={user.pk}",
        f"chatstore/chatuser/{user.pk}/change/",
        f"chatstore/chatuser/{user.pk}/history/",
    ):
        html = read(client, f"/admin/{path}")
        assert "driftwave van der lake" in html
        assert not re.search("Driftwave|Van Der", html)
