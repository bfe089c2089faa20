"""What is long is folded: samples of a preview after ten messages at each end, accounts of a raid after eight."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.operations.raids.detection import check_raids
from tests.moderation.channels import WILMA, by_victor, make_channel, old_ids, preview, write
from tests.moderation.raids import forget_raids, write_raid
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]


def test_a_preview_shows_ten_messages_at_each_end_and_folds_the_others(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids[5::10])
    write(channel, [message_id for n, message_id in enumerate(ids) if n % 10 != 5], author=WILMA)
    html = read_html(sign_in(mona), f"/purges/{preview(mona, by_victor(channel)).pk}/")
    first, last = html[html.index(">First messages<") :].split(">Last messages<")
    shown, folded = first.split("<details", 1)
    assert shown.count('class="outcome"') == 10
    assert "Show more" in folded
    assert folded.count('class="outcome"') > 0
    earlier, newest = last.split("phone-fold")
    assert "Show earlier messages" in earlier
    assert newest.count('class="outcome"') == 10


def test_the_accounts_of_a_raid_beyond_eight_are_folded_and_stay_selected(mona: User, sign_in: SignIn) -> None:
    raid = write_raid()
    check_raids(postgres_now())
    html = read_html(sign_in(mona), f"/raids/{raid.channel.pk}/")
    forget_raids()
    fold = re.search(r'phone-fold">(.*?)</details>', html, re.DOTALL)
    assert fold is not None
    assert f"Show {len(raid.raiders) - 8} more accounts" in fold[1]
    assert len(re.findall(r'name="account" value="\d+"[^>]* checked', fold[1])) == len(raid.raiders) - 8
