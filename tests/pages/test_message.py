"""The page of a message shows its history and its neighbours, and restores it."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from chatstore.domain.milliseconds import DAY_MS, HOUR_MS
from chatstore.domain.roles import Role
from chatstore.domain.snowflakes import make_snowflake, ms_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import messages as message_store
from moderation.management.demo_accounts import set_roles
from moderation.models import Preferences, Purge
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.conftest import make_user
from tests.moderation.channels import (
    VICTOR,
    by_victor,
    choose,
    confirm,
    everything,
    name_authors,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.pages.exports import write_hostile
from tests.pages.restoring import restore
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    """Create a channel two months ago, whose first messages are in one bucket."""
    name_authors()
    made_ms = ms_of(old_ids(1, buckets_ago=6)[0]) - secrets.randbelow(DAY_MS)
    return Channel.objects.create(pk=make_snowflake(made_ms) | secrets.randbits(22), name="room")


def test_all_times_of_a_deleted_message_name_utc(mona: User, channel: Channel, sign_in: SignIn) -> None:
    (message_id,) = ids_in(channel, 1)
    write(channel, [message_id])
    purge_now(mona, everything(channel))
    html = sign_in(mona).get(f"/channels/{channel.pk}/{message_id}/").content.decode()
    head = html.split('class="page-head"')[1].split("</form>")[0]
    # Below the heading, neighbours have times of their own.
    times = re.findall(r">([^<]+)</time>", head)[:3]
    assert len(times) == 3
    assert all(time.endswith("UTC") for time in times), times


def ids_in(channel: Channel, count: int) -> list[int]:
    """Return ascending ids right after the creation of the channel, unique to it."""
    start = ms_of(channel.pk) + 1_000
    return [make_snowflake(start + 90_000 * n) | secrets.randbits(22) for n in range(count)]


def page_of(client: Client, channel: Channel, message_id: int, *, status: int = 200) -> str:
    response = client.get(f"/channels/{channel.pk}/{message_id}/")
    assert response.status_code == status
    return response.content.decode()


def ids_shown(html: str) -> list[int]:
    return [int(found) for found in re.findall(r'<article [^>]*id="m(-?\d+)"', html)]


def chip_of(html: str) -> str:
    found = re.search(r'<span class="chip[^"]*">([^<]*)</span>\s*</div>', html)
    assert found
    return found[1]


def test_a_live_message_is_highlighted_among_its_neighbours(mona: User, sign_in: SignIn, channel: Channel) -> None:
    ids = ids_in(channel, 30)
    write(channel, ids)
    html = page_of(sign_in(mona), channel, ids[12])
    assert chip_of(html) == "in the channel"
    shown = ids_shown(html)
    assert shown == ids[7:18]
    question = html.split('class="subject')[1]
    assert f"hello {ids[12]}" in question
    assert f"?around={ids[12]}#m{ids[12]}" in html


def test_its_author_is_named_as_elsewhere_and_the_times_do_not_repeat_the_days(
    mona: User, sign_in: SignIn, channel: Channel
) -> None:
    ids = ids_in(channel, 3)
    write(channel, ids)
    heading, below = page_of(sign_in(mona), channel, ids[1]).split('id="place"')
    assert "@victor71" in heading
    assert f'href="/users/{VICTOR}/"' in heading
    shown = re.findall(r"<time[^>]*>([^<]*)</time>", below.split('class="samples"')[1].split("</section>")[0])
    assert shown
    assert all(re.fullmatch(r"\d\d:\d\d", time) for time in shown)


def test_a_deleted_message_shows_who_deleted_it_why_and_its_text(mona: User, sign_in: SignIn, channel: Channel) -> None:
    ids = ids_in(channel, 40)
    write(channel, ids[::2], content="buy my coins")
    write(channel, ids[1::2], author=VICTOR + 1)
    purge = purge_now(mona, by_victor(channel))
    html = page_of(sign_in(mona), channel, ids[12])
    assert chip_of(html) == "deleted"
    assert f"by {mona.username}" in html
    assert "Reason: “a test”." in html
    assert f"/purges/{purge.pk}/" in html
    assert f"buy my coins {ids[12]}" in html.split('class="subject deleted"')[1]
    assert ids[12] in ids_shown(html)
    assert ids[11] in ids_shown(html)


def test_the_text_of_a_deleted_message_needs_the_permission_to_see_purges(
    mona: User, sign_in: SignIn, channel: Channel
) -> None:
    ids = ids_in(channel, 30)
    write(channel, ids, content="buy my coins")
    purge_now(mona, everything(channel))
    reader = make_user("rita", group=None)
    set_roles(reader, (Role.DIRECT,))
    html = page_of(sign_in(reader), channel, ids[12])
    assert chip_of(html) == "deleted"
    assert "buy my coins" not in html
    assert "Reason" not in html
    assert "/purges/" not in html


def test_a_withdrawn_message_is_marked_and_its_text_not_shown(mona: User, sign_in: SignIn, channel: Channel) -> None:
    ids = ids_in(channel, 30)
    write(channel, ids)
    withdraw_message(channel.pk, ids[12], actor=VICTOR)
    html = page_of(sign_in(mona), channel, ids[12])
    assert chip_of(html) == "deleted by its author"
    assert f"hello {ids[12]}" not in html
    assert "Restore this message" not in html


def test_the_heading_quotes_a_message_that_may_be_read(mona: User, sign_in: SignIn, channel: Channel) -> None:
    ids = ids_in(channel, 3)
    write(channel, ids, content="tide table")
    client = sign_in(mona)
    for purged in (False, True):
        if purged:
            purge_now(mona, choose(channel.pk, message_ids=[ids[1]]))
        assert f"tide table {ids[1]}" in heading_of(page_of(client, channel, ids[1]))
    withdraw_message(channel.pk, ids[2], actor=VICTOR)
    assert "tide table" not in heading_of(page_of(client, channel, ids[2]))


def heading_of(html: str) -> str:
    return html.split('class="page-head"')[1].split('id="place"', maxsplit=1)[0]


def test_a_message_without_text_is_below_the_heading_of_its_day(mona: User, sign_in: SignIn, channel: Channel) -> None:
    noon = (ms_of(channel.pk) // DAY_MS + 1) * DAY_MS + 12 * HOUR_MS
    earlier, own, later = (make_snowflake(noon + hours * HOUR_MS) | secrets.randbits(22) for hours in (0, 24, 25))
    write(channel, [earlier, own, later])
    withdraw_message(channel.pk, own, actor=VICTOR)
    above, below = page_of(sign_in(mona), channel, own).split('class="subject')
    assert (above.count('class="day"'), below.count('class="day"')) == (2, 0)


def test_an_unknown_message_is_not_found_and_its_position_is_shown(
    mona: User, sign_in: SignIn, channel: Channel
) -> None:
    ids = ids_in(channel, 30)
    write(channel, ids)
    html = page_of(sign_in(mona), channel, ids[12] + 1, status=404)
    assert chip_of(html) == "never seen"
    assert ids[12] in ids_shown(html)


def test_an_id_without_a_message_says_when_it_is_from(mona: User, sign_in: SignIn, channel: Channel) -> None:
    Preferences.objects.create(account=mona, time_zone="Europe/Paris")
    unseen = make_snowflake(1_709_474_520_000) | secrets.randbits(22)
    client = sign_in(mona)
    for path in (f"/find/?q={unseen}", f"/messages/{unseen}/", f"/channels/{channel.pk}/{unseen}/"):
        text = re.sub(r"<[^>]+>|\s+", " ", client.get(path).content.decode())
        assert "According to the ID, it was posted" in text, path
        assert text.count("3 Mar 2024, 15:02 (14:02 UTC)") == 1, path


def test_a_single_message_is_restored_by_a_plain_form(mona: User, sign_in: SignIn, channel: Channel) -> None:
    ids = ids_in(channel, 130)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    client = sign_in(mona)
    path = f"/channels/{channel.pk}/{ids[12]}/"
    assert f'href="{path}undo/?purge={purge.pk}"' in client.get(path).content.decode()
    assert restore(client, f"{path}undo/?purge={purge.pk}") == path
    assert "This message is being restored" in client.get(path).content.decode()
    twice = {"purge": str(purge.pk), "reason": "Appeal accepted"}
    assert client.post(f"{path}undo/", twice)["Location"] == f"/purges/{purge.pk}/?undo=earlier"
    run_purge(purge.pk)
    assert client.post(f"{path}undo/", twice)["Location"] == f"/purges/{purge.pk}/?undo=earlier"
    assert purge.undos.count() == 1
    html = client.get(path).content.decode()
    assert chip_of(html) == "in the channel"
    assert "restored this message" in html
    assert "Restore this message" not in html
    assert message_store.read_message(channel.pk, ids[12]) is not None
    assert message_store.read_message(channel.pk, ids[13]) is None
    # The other messages of the purge are still deleted.
    assert "12 messages deleted here" in html.split('class="subject')[0]
    assert "117 messages deleted here" in html.split('class="subject')[1]
    assert "129 messages deleted" in html
    assert html.count("View purge") == 1
    assert "in the whole purge" not in html
    # The next message of the same purge can still be restored.
    page = page_of(client, channel, ids[13])
    # Beside what was deleted, above the messages around it. It asks first, so it is no louder than elsewhere.
    offer = page.index('class="spread restore-offer"')
    assert page.index("Saved copy. No longer") > page.index('id="place"') > offer > page.index("<h1>")
    assert offer < page.index("Restoring puts the message back unchanged") < page.index('id="place"')
    button = page.index("Restore this message", page.index('class="button"', offer))
    assert offer < button < page.index('id="place"')


def test_the_page_shows_that_another_purge_still_covers_the_message(
    mona: User, sign_in: SignIn, channel: Channel
) -> None:
    ids = ids_in(channel, 130)
    write(channel, ids)
    client = sign_in(mona)
    first = purge_now(mona, everything(channel))
    request_undo(first.pk, moderator=mona, part=UndoPart(message_ids=(ids[4],)), reason="Appeal accepted")
    run_purge(first.pk)
    second = purge_now(mona, choose(channel.pk, message_ids=[ids[4]]))
    html = page_of(client, channel, ids[4])
    assert html.index(f"/purges/{second.pk}/") < html.index("Purges that included this message")
    assert re.search(r"Undo by [^<]*</span>\s*<span>restored this message", html)
    assert [int(i) for i in re.findall(r'class="title" href="/purges/(-?\d+)/"', html)] == [second.pk, first.pk]


def test_of_two_overlapping_purges_only_the_second_undo_restores_it(
    mona: User, sign_in: SignIn, channel: Channel
) -> None:
    ids = ids_in(channel, 130)
    write(channel, ids)
    drafts = [preview(mona, everything(channel)), preview(mona, choose(channel.pk, message_ids=[ids[4]]))]
    purges = [run_to_end(confirm(mona, draft)) for draft in drafts]
    client = sign_in(mona)
    path = f"/channels/{channel.pk}/{ids[4]}/"
    html = client.get(path).content.decode()
    assert "1 other purge also deleted this message" in html
    restore(client, f"{path}undo/?purge={purges[1].pk}")
    run_to_end(purges[1])
    html = client.get(path).content.decode()
    assert chip_of(html) == "deleted"
    assert "not restored: another purge deleted this message too" in html
    restore(client, f"{path}undo/?purge={purges[0].pk}")
    run_to_end(purges[0])
    assert chip_of(client.get(path).content.decode()) == "in the channel"


def test_a_purge_that_does_not_cover_the_message_restores_nothing(
    mona: User, sign_in: SignIn, channel: Channel
) -> None:
    ids = ids_in(channel, 130)
    write(channel, ids[:-1])
    purge = purge_now(mona, everything(channel))
    client = sign_in(mona)
    for message_id, named in ((ids[-1], str(purge.pk)), (ids[0], "7"), (ids[0], ""), (ids[0], "x")):
        response = client.post(f"/channels/{channel.pk}/{message_id}/undo/", {"purge": named})
        assert response.status_code == 400, (message_id, named)
    assert Purge.objects.get(pk=purge.pk).state == purge.state


@pytest.mark.parametrize("removed", [False, True])
def test_a_bare_id_leads_to_its_channel(mona: User, sign_in: SignIn, channel: Channel, *, removed: bool) -> None:
    ids = ids_in(channel, 30)
    write(channel, ids)
    if removed:
        purge_now(mona, everything(channel))
    client = sign_in(mona)
    target = f"/channels/{channel.pk}/{ids[3]}/"
    assert client.get(f"/messages/{ids[3]}/")["Location"] == target
    assert client.get("/find/", {"q": str(ids[3])})["Location"] == target


def test_a_bare_id_of_a_withdrawn_message_leads_to_its_channel(mona: User, sign_in: SignIn, channel: Channel) -> None:
    ids = ids_in(channel, 5)
    write(channel, ids)
    withdraw_message(channel.pk, ids[3], actor=VICTOR)
    assert sign_in(mona).get(f"/messages/{ids[3]}/")["Location"] == f"/channels/{channel.pk}/{ids[3]}/"


def test_a_bare_unknown_id_shows_where_was_searched(mona: User, sign_in: SignIn, channel: Channel) -> None:
    ids = ids_in(channel, 5)
    write(channel, ids)
    response = sign_in(mona).get(f"/messages/{ids[3] + 1}/")
    assert response.status_code == 404
    assert re.search(r"[\d,]+ channels? (was|were) active around that time", response.content.decode())


def test_the_most_distant_ids_are_answered(mona: User, sign_in: SignIn, channel: Channel) -> None:
    client = sign_in(mona)
    for extreme in (-(1 << 63), -1, 0, (1 << 63) - 1):
        assert client.get(f"/messages/{extreme}/").status_code == 404, extreme
        assert client.get(f"/channels/{channel.pk}/{extreme}/").status_code == 404, extreme


def test_hostile_content_breaks_no_message_page(mona: User, sign_in: SignIn, tmp_path: Path) -> None:
    channel_id, path = write_hostile(tmp_path, until=dt.datetime.now(dt.UTC))
    call_command("import_discord", str(path), verbosity=0)
    client = sign_in(mona)
    ids = ids_shown(client.get(f"/channels/{channel_id}/").content.decode())
    for removed in (False, True):
        if removed:
            purge_now(mona, choose(channel_id, everything=True))
        for message_id in (ids[0], ids[3]):
            html = client.get(f"/channels/{channel_id}/{message_id}/").content.decode()
            assert 'class="subject' in html
            check_harmless(html)


def test_a_live_message_can_be_deleted_and_restored_on_its_page(mona: User, sign_in: SignIn, channel: Channel) -> None:
    ids = ids_in(channel, 3)
    write(channel, ids)
    client = sign_in(mona)
    assert "Delete this message" in page_of(client, channel, ids[1])
    path = f"/channels/{channel.pk}/delete-message/"
    response = client.post(path, {"message_id": ids[1], "then": "message"})
    purge = Purge.objects.get(moderator=mona)
    back = f"/channels/{channel.pk}/{ids[1]}/?deleted_by={purge.pk}"
    assert (response.status_code, response["Location"]) == (302, back)
    waiting = client.get(back).content.decode()
    assert "This message is being deleted." in waiting
    assert f'hx-get="{back}"' in waiting
    assert "Delete this message" not in waiting
    run_to_end(purge)
    done = client.get(back).content.decode()
    assert chip_of(done) == "deleted"
    assert "hx-get" not in done.split('id="message-page"')[1].split(">")[0]
    offer = done.split('data-restored="Message restored"')[0].rsplit("<form", 1)[1]
    assert f'action="/purges/{purge.pk}/undo/"' in offer
    assert client.post(f"/purges/{purge.pk}/undo/", {"reason": "Deleted by mistake"}).status_code == 302
    run_to_end(purge)
    assert chip_of(page_of(client, channel, ids[1])) == "in the channel"


def test_a_message_is_deleted_only_by_those_who_may_delete_there(mona: User, sign_in: SignIn, channel: Channel) -> None:
    ids = ids_in(channel, 2)
    write(channel, ids)
    reader = make_user("rita", group=None)
    set_roles(reader, (Role.DIRECT,))
    assert "Delete this message" not in page_of(sign_in(reader), channel, ids[0])
    purge = purge_now(mona, everything(channel))
    client = sign_in(mona)
    deleted = page_of(client, channel, ids[0])
    assert "Delete this message" not in deleted
    # Who has not deleted it here is offered the restore that asks for a reason.
    assert "Restore this message" in deleted
    assert "Message restored" not in deleted
    shown = client.get(f"/channels/{channel.pk}/{ids[0]}/?deleted_by={purge.pk + 1}").content.decode()
    assert "Message restored" not in shown
    assert client.get(f"/channels/{channel.pk}/{ids[0]}/?deleted_by=x").status_code == 400
    assert "Message restored" in client.get(f"/channels/{channel.pk}/{ids[0]}/?deleted_by={purge.pk}").content.decode()
