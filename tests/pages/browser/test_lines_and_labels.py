"""Positions that only a browser knows: of a deleted message among its neighbors, and of the labels of a time axis."""

from __future__ import annotations

import datetime as dt

from playwright.sync_api import expect

from chatstore.domain.snowflakes import first_id_at, unix_ms
from chatstore.models.users import User
from tests.moderation.channels import (
    WILMA,
    by_victor,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    run_to_end,
    write,
)
from tests.pages.serving import Site, browse_as, create_account, in_thread

ENDS = (dt.datetime(2023, 10, 11, 17, 22, tzinfo=dt.UTC), dt.datetime(2024, 11, 29, 22, 4, tzinfo=dt.UTC))
"""Of an axis whose last label begins at 85 % of its width."""


def test_a_deleted_message_is_in_line_with_those_around_it(site: Site) -> None:
    account = create_account("mona")

    def delete_the_middle() -> str:
        mona = User.objects.get(username=account[0])
        channel, ids = make_channel(), old_ids(3)
        write(channel, ids[::2], author=WILMA)
        write(channel, ids[1:2])
        run_to_end(confirm(mona, preview(mona, by_victor(channel))))
        return f"{site.url}/channels/{channel.pk}/{ids[1]}/"

    with browse_as(account, site) as page:
        page.goto(in_thread(delete_the_middle))
        avatars = page.locator(".samples .avatar")
        expect(avatars).to_have_count(3)
        expect(page.locator(".subject.deleted .avatar")).to_have_count(1)
        lefts = avatars.evaluate_all("all => all.map(one => one.getBoundingClientRect().left)")
        assert len(set(lefts)) == 1, lefts


def test_a_time_axis_shows_the_labels_that_have_room(site: Site) -> None:
    account = create_account("mona")

    def preview_a_year() -> str:
        mona = User.objects.get(username=account[0])
        channel = make_channel()
        write(channel, [first_id_at(unix_ms(time)) for time in ENDS])
        return f"{site.url}/purges/{preview(mona, everything(channel)).pk}/"

    with browse_as(account, site) as page:
        page.goto(in_thread(preview_a_year))
        for width, shown in (
            (1280, ["1 Jan 2024", "1 Apr 2024", "1 Jul 2024", "1 Oct 2024"]),
            (740, ["1 Jan 2024", "1 Jul 2024"]),
            (360, ["1 Jan 2024", "1 Jul 2024"]),
        ):
            page.set_viewport_size({"width": width, "height": 800})
            labels = page.locator(".time-axis text").filter(visible=True)
            expect(labels).to_have_text(shown)
            axis = page.locator(".time-axis").bounding_box()
            last = labels.last.bounding_box()
            assert axis is not None
            assert last is not None
            assert last["x"] + last["width"] <= axis["x"] + axis["width"], width
