"""The home page lists the user's own previews, not those of other moderators."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from chatstore.models.users import User
from tests.moderation.channels import confirm, everything, make_channel, old_ids, preview, write

SignIn = Callable[[User], Client]


def test_only_ones_own_previews_need_attention(mona: User, lena: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(5))
    purge = preview(mona, everything(channel))
    link = f'href="/purges/{purge.pk}/"'
    assert link in sign_in(mona).get("/").content.decode()
    assert link not in sign_in(lena).get("/").content.decode()
    # Everybody finds it in the list, and sees it once it is confirmed.
    assert link in sign_in(lena).get("/purges/?state=ready").content.decode()
    confirm(mona, purge)
    assert link in sign_in(lena).get("/").content.decode()
