"""The page of a running scan shows what was found so far: counts, and the newest matches."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.live import Live
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.store import cassandra, figures, ledger
from moderation.domain.filters import Author, Words
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview import bucket_reads
from moderation.operations.preview.samples import NEWEST_MATCHES
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import draft_purge
from moderation.views import purge_page
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    by_victor,
    choose,
    confirm,
    make_channel,
    now_ms,
    old_ids,
    run_to_end,
    write,
)
from tests.pages.exports import write_hostile
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _freeze_each_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_reads, "PLAN_ROWS", 1)


@pytest.fixture
def channel() -> Channel:
    return make_channel()


def begin_scan(moderator: User, selection: Selection, *, buckets: int = 1) -> Purge:
    """Scan the first buckets of a selection."""
    purge = draft_purge(moderator=moderator, selection=selection)
    for _ in range(buckets):
        scan_purge(purge.pk, ends_turn=lambda: True)
    purge.refresh_from_db()
    return purge


def count_messages(channel: Channel, *buckets_ago: int, number: int) -> None:
    """Record in the ledger that some buckets have a number of messages each."""
    for ago in buckets_ago:
        bucket = bucket_at(now_ms()) - ago
        first, last = bucket_ids(bucket)
        ledger.set_live(channel.pk, bucket, Live(first, last, number), read_began_us=postgres_now_us())


def shown_ids(html: str) -> list[int]:
    return [int(message_id) for message_id in re.findall(r'<article class="msg[^"]*" id="m(\d+)"', html)]


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_the_newest_matches_are_shown_newest_first(mona: User, channel: Channel, sign_in: SignIn) -> None:
    old, new = old_ids(20, buckets_ago=5), old_ids(7, buckets_ago=4)
    write(channel, [*old[::2], *new[:3]])
    write(channel, [*old[1::2], *new[3:]], author=WILMA)
    client = sign_in(mona)
    purge = begin_scan(mona, by_victor(channel))
    html = client.get(f"/purges/{purge.pk}/").content.decode()
    assert "Newest matches so far" in html
    assert shown_ids(html) == old[::2][:-6:-1]
    scan_purge(purge.pk, ends_turn=lambda: True)
    html = client.get(f"/purges/{purge.pk}/live/").content.decode()
    assert shown_ids(html) == [*new[2::-1], *old[::2][:-3:-1]]


def test_what_was_not_scanned_yet_is_not_shown_as_kept(mona: User, channel: Channel, sign_in: SignIn) -> None:
    write(channel, old_ids(5, buckets_ago=5))
    write(channel, old_ids(5, buckets_ago=4))
    count_messages(channel, 5, 4, number=5)
    client, purge = sign_in(mona), begin_scan(mona, by_victor(channel))
    (foot,) = client.get(f"/purges/{purge.pk}/live/").content.decode().split('class="strip-foot"')[1:]
    text = text_of(foot)
    assert "to delete no match so far" in text
    assert "Period Messages To delete No match so far" in text
    while purge.state == PurgeState.SCANNING:
        scan_purge(purge.pk, ends_turn=lambda: True)
        purge.refresh_from_db()
    assert "to delete not included" in text_of(client.get(f"/purges/{purge.pk}/live/").content.decode())
    confirm(mona, purge)
    # What is still to be deleted is not deleted yet either.
    assert "to delete not included" in text_of(client.get(f"/purges/{purge.pk}/live/").content.decode())
    run_to_end(purge)
    assert "deleted not deleted" in text_of(client.get(f"/purges/{purge.pk}/live/").content.decode())


def test_a_scan_of_more_than_was_estimated_shows_no_total(mona: User, channel: Channel, sign_in: SignIn) -> None:
    write(channel, old_ids(5, buckets_ago=5))
    write(channel, old_ids(5, buckets_ago=4))
    count_messages(channel, 5, 4, number=5)
    purge = begin_scan(mona, by_victor(channel))
    client = sign_in(mona)
    assert "of at most" in text_of(client.get(f"/purges/{purge.pk}/live/").content.decode())
    Purge.objects.filter(pk=purge.pk).update(scanned=1_000)
    assert "Scanned 1,000 messages so far." in text_of(client.get(f"/purges/{purge.pk}/live/").content.decode())


def test_the_total_is_of_all_selected_channels_also_after_one_has_matches(mona: User, sign_in: SignIn) -> None:
    # Scanned in the order of their ids, which are partly random.
    first, second = sorted((make_channel() for _ in range(2)), key=lambda channel: channel.pk)
    for number, channel in ((5, first), (70, second)):
        write(channel, old_ids(number, buckets_ago=5))
        write(channel, old_ids(number, buckets_ago=4), author=WILMA)
    count_messages(first, 5, 4, number=5)
    count_messages(second, 5, 4, number=70)
    selection = Selection(channel_ids=(first.pk, second.pk), where=Author((VICTOR,)))
    purge = begin_scan(mona, selection)
    assert purge.manifest == 5
    text = text_of(sign_in(mona).get(f"/purges/{purge.pk}/live/").content.decode())
    assert "Scanned 5 of at most 150 messages." in text
    assert "All messages in these channels" in text


def test_a_total_with_a_period_that_was_never_counted_is_not_shown(
    mona: User, channel: Channel, sign_in: SignIn
) -> None:
    for ago in (5, 4, 3):
        write(channel, old_ids(5, buckets_ago=ago))
    purge = begin_scan(mona, by_victor(channel))
    assert "Scanned 5 messages so far." in text_of(sign_in(mona).get(f"/purges/{purge.pk}/live/").content.decode())


def test_a_total_with_a_period_that_was_measured_earlier_is_an_estimate(
    mona: User, channel: Channel, sign_in: SignIn
) -> None:
    for ago in (5, 4):
        write(channel, old_ids(5, buckets_ago=ago))
    bucket = bucket_at(now_ms()) - 4
    figures.note_figures(channel.pk, bucket, {"live_rows": 7}, source="probe", measured_at=postgres_now())
    purge = begin_scan(mona, by_victor(channel))
    text = text_of(sign_in(mona).get(f"/purges/{purge.pk}/live/").content.decode())
    assert "Scanned 5 of at most about 12 messages." in text


def test_lists_do_not_count_what_a_running_scan_has_found(mona: User, channel: Channel, sign_in: SignIn) -> None:
    write(channel, old_ids(5, buckets_ago=5))
    write(channel, old_ids(5, buckets_ago=4))
    purge, client = begin_scan(mona, by_victor(channel)), sign_in(mona)
    path = f"/purges/?by={mona.username}"
    assert purge.manifest == 5
    assert "5 messages" not in text_of(client.get(path).content.decode())
    scan_purge(purge.pk)
    assert "10 messages" in text_of(client.get(path).content.decode())


def test_each_channel_is_named_above_its_matches(mona: User, sign_in: SignIn) -> None:
    # Scanned in the order of their ids, which are partly random.
    channels = sorted((make_channel() for _ in range(2)), key=lambda channel: channel.pk)
    for number, channel in enumerate(channels):
        Channel.objects.filter(pk=channel.pk).update(name=f"pier-{number}")
        write(channel, old_ids(2, buckets_ago=4 - number))
        write(channel, old_ids(2, buckets_ago=2), author=WILMA)
    selection = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR, WILMA)))
    purge = begin_scan(mona, selection, buckets=3)
    text = text_of(sign_in(mona).get(f"/purges/{purge.pk}/live/").content.decode())
    assert text.count("pier-0") == 2
    assert text.count("pier-1") == 1


def test_nothing_is_shown_before_the_first_match(mona: User, channel: Channel, sign_in: SignIn) -> None:
    write(channel, old_ids(3, buckets_ago=5), author=WILMA)
    write(channel, old_ids(3, buckets_ago=4), content="goodbye")
    with_words = Selection(channel_ids=(channel.pk,), where=Words("goodbye"))
    purge = begin_scan(mona, with_words)
    html = sign_in(mona).get(f"/purges/{purge.pk}/live/").content.decode()
    assert "Found 0 matches" in text_of(html)
    assert "Newest matches so far" not in html


def test_a_match_that_no_longer_exists_is_left_out(mona: User, channel: Channel, sign_in: SignIn) -> None:
    ids = old_ids(7, buckets_ago=5)
    write(channel, ids)
    write(channel, old_ids(1, buckets_ago=4))
    purge = begin_scan(mona, by_victor(channel))
    cassandra.execute(
        "DELETE FROM messages WHERE channel_id = ? AND bucket = ? AND message_id = ?",
        (channel.pk, purge.scanned_bucket, ids[-1]),
    )
    assert shown_ids(sign_in(mona).get(f"/purges/{purge.pk}/live/").content.decode()) == ids[-2:-6:-1]


def test_content_that_attacks_is_shown_as_text(mona: User, tmp_path: Path, sign_in: SignIn) -> None:
    channel_id, path = write_hostile(tmp_path, until=dt.datetime.now(dt.UTC))
    call_command("import_discord", str(path), verbosity=0)
    purge = begin_scan(mona, choose(channel_id, everything=True))
    html = sign_in(mona).get(f"/purges/{purge.pk}/").content.decode()
    assert "Newest matches so far" in html
    check_harmless(html)


def test_the_page_shows_no_preview_before_the_scan_has_ended(mona: User, channel: Channel, sign_in: SignIn) -> None:
    write(channel, old_ids(3, buckets_ago=5))
    write(channel, old_ids(3, buckets_ago=4))
    purge = begin_scan(mona, by_victor(channel))
    text = text_of(sign_in(mona).get(f"/purges/{purge.pk}/").content.decode())
    assert "Found 3 matches" in text
    assert "Review" not in text


def test_a_poll_reads_the_matches_only_after_buckets_were_stored(
    mona: User, channel: Channel, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge_page, "POLL_REFRESH_SECONDS", 10**9)
    for ago in (6, 5, 4):
        write(channel, old_ids(3, buckets_ago=ago))
    purge = begin_scan(mona, by_victor(channel))
    client = sign_in(mona)
    html = client.get(f"/purges/{purge.pk}/").content.decode()
    found = re.search(r'hx-get="(/purges/\d+/live/\?version=[^"]+)"', html)
    assert found
    with CaptureQueriesContext(connection) as captured:
        assert client.get(found[1]).status_code == 204
    assert not [query for query in captured if "manifestbucket" in query["sql"]]
    scan_purge(purge.pk, ends_turn=lambda: True)
    assert client.get(found[1]).status_code == 200


def test_many_matches_cost_a_poll_no_more_statements(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    send = cassandra._send

    def count(*args: object, **kwargs: object) -> object:
        sent.append(args)
        return send(*args, **kwargs)  # type: ignore[arg-type]

    client, costs = sign_in(mona), []
    for number in (1, 60):
        channel = make_channel()
        for ago in range(10, 2, -1):
            write(channel, old_ids(number, buckets_ago=ago))
        purge = begin_scan(mona, by_victor(channel), buckets=7)
        client.get(f"/purges/{purge.pk}/live/")
        sent.clear()
        with CaptureQueriesContext(connection) as captured, monkeypatch.context() as patched:
            patched.setattr(cassandra, "_send", count)
            html = client.get(f"/purges/{purge.pk}/live/").content.decode()
        assert len(shown_ids(html)) == NEWEST_MATCHES
        costs.append((len(captured), len(sent)))
    # One statement reads the matches of five buckets; the others, the ledger for the chart.
    assert costs[0] == costs[1]
    assert costs[0][1] <= 3
