"""An account chooses its language and its time zone, and its pages follow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from chatstore.domain.snowflakes import first_id_at, time_of, unix_ms
from chatstore.models.users import User
from moderation.domain.datetimes import parse_datetime
from moderation.models import Preferences
from moderation.presentation import formats
from tests.chatstore.operations.jobs import make_ended_run
from tests.moderation.channels import make_channel, write
from tests.pages.conftest import PreviewedPurge
from tests.pages.pseudo_locale import LANGUAGE, pseudo_locale
from tests.pages.test_timeline import ids_shown

SignIn = Callable[[User], Client]
WINTER = dt.datetime(2026, 1, 21, 23, 30, 5, tzinfo=dt.UTC)


def test_without_preferences_times_are_in_utc(mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get("/preferences/").content.decode()
    assert "Times in UTC" in html
    assert '<html lang="en"' in html
    assert not Preferences.objects.filter(pk=mona.pk).exists()


def test_saved_preferences_apply_to_the_account_alone(tess: User, mona: User, sign_in: SignIn) -> None:
    client = sign_in(tess)
    answer = client.post("/preferences/", {"language": "en", "time_zone": "Asia/Kolkata"})
    assert "Preferences saved." in client.get(answer["Location"]).content.decode()
    kept = Preferences.objects.get(pk=tess.pk)
    assert (kept.language, kept.time_zone) == ("en", "Asia/Kolkata")
    html = client.get("/preferences/").content.decode()
    assert "Preferences saved." not in html
    assert "Times in Asia/Kolkata" in html
    assert '<option value="Asia/Kolkata" selected>' in html
    assert "Times in UTC" in sign_in(mona).get("/preferences/").content.decode()
    assert timezone.get_current_timezone_name() == "UTC"


@pytest.mark.parametrize(
    "fields", [{"time_zone": "Berlin"}, {"language": "xx", "time_zone": "UTC"}, {"time_zone": "\0"}]
)
def test_unknown_values_are_rejected(fields: dict[str, str], mona: User, sign_in: SignIn) -> None:
    answer = sign_in(mona).post("/preferences/", fields)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert not Preferences.objects.filter(pk=mona.pk).exists()


def test_a_time_zone_that_is_gone_from_the_system_is_utc(mona: User, sign_in: SignIn) -> None:
    Preferences.objects.create(account=mona, language="xx", time_zone="Mars/Olympus")
    html = sign_in(mona).get("/preferences/").content.decode()
    assert "Times in UTC" in html
    assert '<html lang="en"' in html


def test_messages_are_shown_in_the_time_zone(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    Preferences.objects.create(account=mona, time_zone="Asia/Kolkata")
    html = sign_in(mona).get(f"/channels/{previewed.channel.pk}/").content.decode()
    assert " IST" not in html
    assert " UTC)" in html.split('class="messages"')[1]


@pytest.mark.parametrize(("zone", "begins"), [("Asia/Kolkata", "18:30"), ("UTC", "00:00")])
def test_a_date_of_the_timeline_begins_at_midnight_in_the_time_zone(
    zone: str, begins: str, mona: User, sign_in: SignIn
) -> None:
    channel = make_channel()
    day = dt.date(2026, 3, 10)
    # Every half hour of the day before and of the day, in UTC.
    ids = [first_id_at(unix_ms(dt.datetime(2026, 3, 9, tzinfo=dt.UTC)) + n * 1_800_000) for n in range(96)]
    write(channel, ids)
    Preferences.objects.create(account=mona, time_zone=zone)
    html = sign_in(mona).get(f"/channels/{channel.pk}/?at={day}").content.decode()
    first = min(ids_shown(html))
    assert f"{time_of(first):%H:%M}" == begins
    assert time_of(first).astimezone(ZoneInfo(zone)).date() == day


@pytest.mark.parametrize(("zone", "shown"), [("Asia/Kolkata", False), ("UTC", True)])
def test_the_dates_of_the_run_list_are_days_in_the_time_zone(
    zone: str, shown: bool, otto: User, sign_in: SignIn
) -> None:
    # 23:00 in UTC is the next day in Kolkata.
    run = make_ended_run("bookkeeping", at=dt.datetime(2026, 3, 10, 23, tzinfo=dt.UTC))
    Preferences.objects.create(account=otto, time_zone=zone)
    for filters, found in (({"until": "2026-03-10"}, shown), ({"since": "2026-03-11"}, not shown)):
        html = sign_in(otto).get("/maintenance/runs/", filters | {"job": "bookkeeping", "before": run.pk + 1})
        assert (f"/maintenance/runs/{run.pk}/" in html.content.decode()) is found


def test_the_dates_of_a_selection_are_in_the_time_zone(mona: User, sign_in: SignIn) -> None:
    Preferences.objects.create(account=mona, time_zone="Asia/Kolkata")
    typed = {"authors": "7", "after": "2026-03-10", "channels": str(make_channel().pk)}
    assert "since 10 March 2026" in sign_in(mona).post(reverse("compose_summary"), typed).content.decode()
    with timezone.override("Asia/Kolkata"):
        parsed = parse_datetime("2026-03-10", now=timezone.localtime())
    assert parsed == dt.datetime(2026, 3, 9, 18, 30, tzinfo=dt.UTC)


def test_the_language_of_the_account_comes_before_the_browsers(mona: User, sign_in: SignIn) -> None:
    with pseudo_locale():
        Preferences.objects.create(account=mona, language=LANGUAGE)
        html = sign_in(mona).get("/preferences/", headers={"accept-language": "en"}).content.decode()
    assert "⟦Preferences⟧" in html
    assert translation.get_language() == "en"


@pytest.mark.unit
def test_a_deadline_has_utc_beside_it() -> None:
    assert formats.format_deadline(WINTER) == "21 Jan 2026, 23:30 UTC"
    with timezone.override("Europe/Vienna"):
        assert formats.format_deadline(WINTER) == "22 Jan 2026, 00:30 (21 Jan 2026, 23:30 UTC)"
        assert formats.format_datetime(WINTER) == "22 Jan 2026, 00:30"
        assert formats.format_exact(WINTER) == "22 January 2026, 00:30:05 (21 January 2026, 23:30:05 UTC)"
        assert formats.format_day(WINTER) == "Thursday, 22 January 2026"
    with timezone.override("America/New_York"):
        assert formats.format_deadline(WINTER) == "21 Jan 2026, 18:30 (23:30 UTC)"


@pytest.mark.unit
def test_a_deadline_after_another_time_does_not_repeat_the_day() -> None:
    assert formats.format_deadline(WINTER, after=WINTER - dt.timedelta(hours=2)) == "23:30 UTC"
    assert formats.format_deadline(WINTER, after=WINTER - dt.timedelta(days=1)) == "21 Jan 2026, 23:30 UTC"
    with timezone.override("Europe/Vienna"):
        # There it is the next day already.
        assert formats.format_deadline(WINTER, after=WINTER - dt.timedelta(hours=2)).startswith("22 Jan 2026, 00:30")
        assert formats.format_deadline(WINTER, after=WINTER - dt.timedelta(minutes=1)).startswith("00:30 (")


@pytest.mark.unit
def test_a_span_of_whole_days_has_no_times() -> None:
    start = dt.datetime(2026, 1, 21, tzinfo=dt.UTC)
    assert formats.format_span(start, start + dt.timedelta(days=10)) == "21 Jan 2026 to 30 Jan 2026"
    assert formats.format_span(start, start + dt.timedelta(days=1)) == "21 Jan 2026"
    assert formats.format_span(start, start + dt.timedelta(hours=6)) == "21 Jan 2026, 00:00 to 06:00"
    with timezone.override("Europe/Vienna"):
        assert formats.format_span(start, start + dt.timedelta(days=1)) == "21 Jan 2026, 01:00 to 22 Jan 2026, 01:00"


@pytest.mark.unit
def test_numbers_follow_the_language() -> None:
    with translation.override("de"):
        assert formats.format_number(1204) == "1.204"
        assert formats.format_number(2.41, digits=1) == "2,4"
    with translation.override("en"):
        assert formats.format_number(1204) == "1,204"
        assert formats.format_number(-1204) == "-1,204"
        assert formats.format_number((1 << 63) - 1) == "9,223,372,036,854,775,807"
        assert formats.format_size(1_234_567) == "1.2 MB"
        assert formats.format_milliseconds(99.96) == "100 ms"
