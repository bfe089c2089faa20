"""A raid is found from what the store knows, reported to moderators, previewed exactly, and over when it is purged."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.milliseconds import DAY_MS, MINUTE_MS
from chatstore.domain.snowflakes import make_snowflake, ms_of
from chatstore.models import Finding
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.notifications import send_notifications
from chatstore.store import activity, cassandra
from chatstore.store.activity import busy_channels
from chatstore.store.redis import redis_client
from moderation.domain.first_seen import FirstSeen
from moderation.domain.raids import Sign
from moderation.models import AuditEntry, RaidSettings
from moderation.operations.raids import reading
from moderation.operations.raids.detection import RAID, check_raids, dismiss_raid, list_raids, order_by_growth
from moderation.operations.raids.review import review_raid, select_raid
from moderation.tasks import run_purge
from tests.moderation.channels import confirm, ids_of, make_channel, now_ms, preview, run_to_end, write
from tests.moderation.raids import Raid, forget_raids, write_raid
from tests.waiting import wait_until
from tests.webhooks import receive_webhooks


@pytest.fixture(autouse=True)
def _no_findings_are_left() -> Iterator[None]:
    yield
    forget_raids()


def write_noticed_raid() -> Raid:
    raid = write_raid()
    wait_until(lambda: raid.channel.pk in busy_channels(20))
    return raid


def reported(raid: Raid, *, minutes_later: float = 0) -> Finding | None:
    check_raids(postgres_now() + dt.timedelta(minutes=minutes_later))
    return Finding.objects.open().filter(kind=RAID, subject=str(raid.channel.pk)).first()


def test_a_raid_is_reported_previewed_exactly_and_over_once_it_is_purged(mona: User, otto: User) -> None:
    raid = write_noticed_raid()
    finding = reported(raid)
    assert finding is not None
    assert finding.summary == "Possible raid in #general (Tidewalkers): 60 messages by 12 accounts in 1 min 28 s"
    assert finding in list_raids(mona)
    assert list_raids(otto) == []

    review = review_raid(mona, raid.channel.pk, start_ms=None, end_ms=None)
    chosen = [account.author_id for account in review.assessment.participants]
    assert set(chosen) == raid.raiders
    assert {account.author_id for account in review.assessment.accounts} == raid.raiders | raid.members
    selection = select_raid(raid.channel.pk, chosen, start_ms=review.start_ms, end_ms=None)
    purge = preview(mona, selection)
    buckets = {bucket_of(message_id) for message_id in (*raid.raid_ids, *raid.other_ids)}
    assert purge.manifest == len(raid.raid_ids)
    assert ids_of(raid.channel, *buckets) == sorted([*raid.raid_ids, *raid.other_ids])

    run_to_end(confirm(mona, purge))
    assert ids_of(raid.channel, *buckets) == raid.other_ids
    assert reported(raid) is None


def test_a_raid_that_began_before_what_is_read_first_is_reported_from_its_beginning(mona: User) -> None:
    raid = write_raid(each=90, apart_ms=2_500)
    wait_until(lambda: raid.channel.pk in busy_channels(20))
    finding = reported(raid)
    assert finding is not None
    assert "1,080 messages by 12 accounts in 44 min 57 s" in str(finding.summary)
    review = review_raid(mona, raid.channel.pk, start_ms=None, end_ms=None)
    assert review.assessment.count == len(raid.raid_ids)
    assert 0 <= ms_of(raid.raid_ids[0]) - review.start_ms < MINUTE_MS


def test_the_numbers_of_a_raid_stay_until_half_an_hour_after_its_last_message() -> None:
    raid = write_noticed_raid()
    summaries = {str(found.summary) for later in (0, 15, 29) if (found := reported(raid, minutes_later=later))}
    assert summaries == {"Possible raid in #general (Tidewalkers): 60 messages by 12 accounts in 1 min 28 s"}
    assert reported(raid, minutes_later=31) is None


def test_a_raid_is_notified_once_by_webhook_and_mail_with_its_text(settings: Settings) -> None:
    # Other tests leave findings open, and raids that would be found here.
    forget_raids()
    Finding.objects.update(notified_at=ClockTimestamp(), mailed_at=ClockTimestamp())
    raid = write_noticed_raid()
    with receive_webhooks() as webhook:
        settings.FINDINGS_WEBHOOK_URL, settings.FINDINGS_MAIL_TO = webhook.url, ["mona@chat.example"]
        for _ in range(2):
            assert reported(raid) is not None
            send_notifications(postgres_now())
    text = "Possible raid in #general (Tidewalkers): 60 messages by 12 accounts in 1 min 28 s"
    (received,) = webhook.received
    assert received["text"].splitlines()[:2] == ["Chatstore: 1 finding", f"! {text}"]
    (opened,) = received["opened"]
    assert (opened["kind"], opened["severity"], opened["summary"]) == (RAID, "critical", text)
    assert opened["details"]["channel"] == str(raid.channel.pk)
    (sent,) = mail.outbox
    assert sent.to == ["mona@chat.example"]
    assert str(sent.body).splitlines()[0] == f"! {text}"


@pytest.mark.usefixtures("only_own_purges_wait")
def test_the_notice_of_a_raid_ends_with_its_purge_and_does_not_count_what_a_part_of_it_deleted(mona: User) -> None:
    raid, other = write_noticed_raid(), write_noticed_raid()
    assert reported(raid) is not None
    raiders = sorted(raid.raiders)
    for some, summary in ((raiders[:4], "40 messages by 8 accounts"), (raiders[4:], None)):
        review = review_raid(mona, raid.channel.pk, start_ms=None, end_ms=None)
        selection = select_raid(raid.channel.pk, some, start_ms=review.start_ms, end_ms=None)
        purge = confirm(mona, preview(mona, selection))
        run_purge(purge.pk)
        found = Finding.objects.open().filter(kind=RAID, subject=str(raid.channel.pk)).first()
        assert (found is not None and summary in str(found.summary)) if summary else found is None
    assert Finding.objects.open().filter(kind=RAID, subject=str(other.channel.pk)).exists()


def test_accounts_are_new_by_their_first_message_in_any_channel_not_by_its_period(mona: User) -> None:
    raid = write_raid()
    known, *new = sorted(raid.raiders)
    write(make_channel(), [make_snowflake(now_ms() - 3 * DAY_MS)], author=known)
    review = review_raid(mona, raid.channel.pk, start_ms=now_ms() - 20 * MINUTE_MS, end_ms=None)
    found = {account.author_id: account for account in review.assessment.accounts}
    assert Sign.FIRST_SEEN not in found[known].signs
    for author_id in new:
        first_ms = ms_of(min(found[author_id].message_ids))
        assert found[author_id].first_seen == FirstSeen(first_ms, first_ms)
        assert Sign.FIRST_SEEN in found[author_id].signs


def test_without_time_to_find_first_messages_accounts_that_may_be_new_are(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    raid = write_raid()
    monkeypatch.setattr(reading, "FIRST_SEEN_SECONDS", -60)
    review = review_raid(mona, raid.channel.pk, start_ms=now_ms() - 20 * MINUTE_MS, end_ms=None)
    for account in review.assessment.accounts:
        assert (Sign.FIRST_SEEN in account.signs) == (account.author_id in raid.raiders)


def test_a_dismissed_raid_is_not_reported_again(mona: User) -> None:
    raid = write_noticed_raid()
    assert reported(raid) is not None
    dismiss_raid(raid.channel.pk, actor=mona)
    assert reported(raid) is None
    assert AuditEntry.objects.filter(action="raid_dismissed", channel_id=raid.channel.pk, actor=mona).exists()


def make_unreadable(raid: Raid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the driver's error for statements about its channel, as for one whose replica is down."""
    send = cassandra.submit

    def submit(cql: str, params: tuple[object, ...] = (), **options: Any) -> cassandra.Pending:
        if raid.channel.pk in params:
            raise StoreUnavailable("A Cassandra replica did not answer in time.")
        return send(cql, params, **options)

    monkeypatch.setattr(cassandra, "submit", submit)


def test_a_channel_that_cannot_be_read_keeps_its_finding_and_others_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raids = write_noticed_raid(), write_noticed_raid()
    # Either of them may be checked first.
    for unreadable, other in (raids, raids[::-1]):
        Finding.objects.filter(kind=RAID).delete()
        with monkeypatch.context() as patched:
            make_unreadable(unreadable, patched)
            assert reported(other) is not None
            assert reported(unreadable) is None
        finding = reported(unreadable)
        assert finding is not None
        with monkeypatch.context() as patched:
            make_unreadable(unreadable, patched)
            assert reported(unreadable) == finding


def test_a_raid_is_found_behind_hundreds_of_channels_that_are_always_busy(mona: User) -> None:
    raid = write_noticed_raid()
    first, minute = make_snowflake(now_ms()), now_ms() // MINUTE_MS
    busy = {str(first + number): 900 for number in range(300)}
    # The minute may end while the test runs.
    keys = [f"posts:{minute}", f"posts:{minute + 1}"]
    for key in keys:
        redis_client().zadd(key, busy)
        redis_client().expire(key, activity.POSTS_KEPT_SECONDS)
    assert reported(raid) is not None


def test_channels_that_grew_most_are_looked_at_first() -> None:
    slot = int(time.time() // (activity.SLOT_MINUTES * 60))
    steady = make_snowflake(now_ms())
    for ago in range(activity.SLOTS):
        redis_client().zadd(f"posts_of_slot:{slot - ago}", {str(steady): 900 * activity.SLOT_MINUTES})
    assert order_by_growth({steady: 950, steady + 1: 25}) == [steady + 1, steady]


def test_a_guild_can_switch_the_detection_off(mona: User) -> None:
    raid = write_noticed_raid()
    RaidSettings.objects.create(guild_id=raid.channel.guild_id or 0, is_enabled=False)
    assert reported(raid) is None


def test_the_notice_of_every_page_is_one_query(mona: User) -> None:
    Finding.objects.filter(kind=RAID).delete()
    mona.has_perm("moderation.add_purge")
    with CaptureQueriesContext(connection) as captured:
        assert list_raids(mona) == []
    assert len(captured) == 1
