"""A tick keeps a message of a preview, and restores one of a purge: each checkbox says which."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from chatstore.models.users import User
from tests.moderation.channels import by_victor, make_channel, old_ids, preview, purge_now, write
from tests.pages.reading import read_page

SignIn = Callable[[User], Client]


def effects_in(html: str) -> set[str]:
    return set(re.findall(r'aria-label="(\w+): Select [^"]*">\s*<span>\1</span>', html))


def test_checkboxes_are_labelled_with_what_they_do(mona: User, sign_in: SignIn) -> None:
    channels, client = (make_channel(), make_channel()), sign_in(mona)
    for channel in channels:
        write(channel, old_ids(4))
    previewed, done = preview(mona, by_victor(channels[0])), purge_now(mona, by_victor(channels[1]))
    for path, effect in (
        (f"/purges/{previewed.pk}/", "keep"),
        (f"/purges/{previewed.pk}/messages/", "keep"),
        (f"/purges/{done.pk}/messages/", "restore"),
    ):
        html = read_page(client, path)
        assert effects_in(html) == {effect}
        assert html.count("select-input") == html.count(f"<span>{effect}</span>") == 4
