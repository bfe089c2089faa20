"""Channel health in the browser: every bucket with its state, its figures, and the available actions."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections import Counter
from collections.abc import Callable
from unittest.mock import ANY

import pytest
from django.test import Client

from chatstore.domain.buckets import bucket_at, bucket_days, bucket_of
from chatstore.domain.live import EMPTY
from chatstore.domain.runs import RunState, Severity
from chatstore.models import BucketDeletes, Channel, ChannelDay, JobRun
from chatstore.models.users import User
from chatstore.operations.bucket_jobs import compaction
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.operations.findings.channels import HEAVY_BUCKET, MISSING_SURVIVORS
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.operations.health.summaries import refresh_summaries
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import ledger
from moderation.domain.states import PurgeState
from moderation.presentation.formats import format_days
from tests.chatstore.figures import note
from tests.findings import close_finding
from tests.moderation.channels import by_victor, confirm, everything, make_channel, now_ms, old_ids, purge_now, write
from tests.pages.conftest import PreviewedPurge
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]


def read(client: Client, channel: Channel, bucket: int | None = None, *, status: int = 200) -> str:
    path = f"/channels/{channel.pk}/health/" + ("" if bucket is None else f"{bucket}/")
    response = client.get(path)
    assert response.status_code == status
    return response.content.decode()


def plain(html: str) -> str:
    """Return the text of a page in one line."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def figure_rows(html: str) -> dict[str, list[str]]:
    """Return the figures of a bucket by name: value, and source with age."""
    (listed,) = re.findall(r'<dl class="figures">.*?</dl>', html, re.DOTALL)
    rows = re.findall(r"<dt>(.*?)</dt>(.*?)</div>", listed, re.DOTALL)
    return {
        name: [plain(cell).strip() for cell in re.findall(r"<dd.*?</dd>", cells, re.DOTALL)] for name, cells in rows
    }


def test_the_strip_has_a_labelled_link_for_each_bucket(otto: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    bucket = bucket_of(ids[0])
    note(channel.pk, bucket, tombstones=61_204, live_rows=3)
    html = read(sign_in(otto), channel)
    days = format_days(*bucket_days(bucket))
    assert f'href="/channels/{channel.pk}/health/{bucket}/" class="is-tombstones"' in html
    assert f'aria-label="{days}: too many tombstones, 3 messages, 61,204 tombstones, unknown size"' in html
    assert "1 too many tombstones" in plain(html)
    assert "too many tombstones, critical" in plain(html)


def test_the_legend_counts_the_bars_of_the_strip(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    for bucket in (400, 401, 404):
        ledger.ensure_row(channel.pk, bucket)
        ledger.set_live(channel.pk, bucket, EMPTY, read_began_us=postgres_now_us())
    note(channel.pk, 401, tombstones=30)
    html = read(sign_in(otto), channel)
    bars = Counter(re.findall(r'<a href="[^"]*" class="is-([a-z]+)', html.split("data-strip>")[1].split("</svg>")[0]))
    legend = html.split('<div class="strip-foot">')[1].split("<details")[0]
    assert (bars["empty"], bars["emptied"]) == (2, 1)
    assert bars["unwritten"] >= 2
    text = plain(legend)
    for kind, label in (("empty", "empty"), ("emptied", "empty, with tombstones"), ("unwritten", "never written")):
        assert f" {bars[kind]} {label} " in text


def test_links_lead_to_the_newest_years_of_a_long_strip_and_of_its_table(otto: User, sign_in: SignIn) -> None:
    channel, newest = make_channel(), bucket_at(now_ms())
    for bucket in range(newest - 150, newest + 1):
        ledger.ensure_row(channel.pk, bucket)
    client, path = sign_in(otto), f"/channels/{channel.pk}/health/"
    for query, current, shown in (("", "all", 151), ("?years=3&days=7", "3", 111), ("?years=1", "1", 37)):
        html = client.get(f"{path}{query}").content.decode()
        strip, _, rest = html.split("data-strip>")[1].partition("</svg>")
        assert strip.count('class="is-') == shown
        assert rest.partition("</table>")[0].count('<td class="nowrap"><a href=') == shown
        assert f"{shown - 1} unknown" in plain(rest)
        assert re.findall(r'href="\?years=(\w+)[^"]*#buckets" aria-current="true"', html) == [current]
    for query in ("2", "all ", "-1", "%00"):
        refused = client.get(f"{path}?years={query}")
        assert refused.status_code == 400
        assert "1 year, 3 years or all" in refused.content.decode()


def test_links_keep_the_other_chart_as_it_is(otto: User, sign_in: SignIn) -> None:
    channel, newest = make_channel(), bucket_at(now_ms())
    for bucket in (newest - 150, newest):
        ledger.ensure_row(channel.pk, bucket)
    html = sign_in(otto).get(f"/channels/{channel.pk}/health/?years=3&days=7").content.decode()
    assert 'href="?years=1&amp;days=7#buckets"' in html
    assert 'href="?years=3&amp;days=30#history"' in html


def test_a_strip_of_a_year_has_no_links_to_years(otto: User, sign_in: SignIn) -> None:
    channel, newest = make_channel(), bucket_at(now_ms())
    for bucket in (newest - 36, newest):
        ledger.ensure_row(channel.pk, bucket)
    assert "years=" not in read(sign_in(otto), channel)


def test_the_count_of_uncounted_buckets_names_the_current_one(otto: User, sign_in: SignIn) -> None:
    channel, current, client = make_channel(), bucket_at(now_ms()), sign_in(otto)
    for bucket in (current - 3, current):
        ledger.ensure_row(channel.pk, bucket)
    assert "2 buckets not counted (with the current bucket)" in plain(read(client, channel))
    ledger.set_live(channel.pk, current, EMPTY, read_began_us=postgres_now_us())
    text = plain(read(client, channel))
    assert "1 bucket not counted" in text
    assert "with the current bucket" not in text


def test_the_outline_of_the_page_s_bucket_covers_all_bars(otto: User, sign_in: SignIn) -> None:
    channel, client = make_channel(), sign_in(otto)
    for bucket in (400, 401, 402):
        note(channel.pk, bucket, live_rows=5)
    html = read(client, channel, 401)
    bars, above = html.split("data-strip>")[1].partition("</svg>")[0].rsplit("</a>", 1)
    (x,) = re.findall(r'<rect class="outline" x="([^"]+)"', above)
    (link,) = re.findall(r'<a href="[^"]*/401/".*?<rect class="slot" x="([^"]+)"', bars, re.DOTALL)
    assert x == link
    assert "outline" not in bars
    assert "outline" not in read(client, channel).split("data-strip>")[1].partition("</svg>")[0]


def test_an_unmeasured_bucket_shows_every_figure_as_unknown(otto: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    client = sign_in(otto)
    rows = figure_rows(read(client, channel, bucket_of(ids[0])))
    # Repairs concern the whole cluster, and other tests run some.
    del rows["Last full repair"]
    assert {name: cells[0] for name, cells in rows.items()} == dict.fromkeys(rows, "unknown")
    assert {cells[1] for cells in rows.values()} == {"never measured"}
    assert "never measured" in plain(read(client, channel))


def test_an_empty_bucket_has_no_share_of_tombstones(mona: User, otto: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    purge_now(mona, everything(channel))
    bucket = bucket_of(ids[0])
    note(channel.pk, bucket, tombstones=0)
    rows = figure_rows(read(sign_in(otto), channel, bucket))
    assert rows["Share of tombstones"] == ["–", "no messages and no tombstones"]


def test_each_figure_shows_source_and_age_and_old_ones_are_marked(otto: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    bucket = bucket_of(ids[0])
    note(channel.pk, bucket, tombstones=70, live_rows=3, hours_ago=30)
    note(channel.pk, bucket, page_us=2_410)
    note(channel.pk, bucket, bytes=1_234_567, source="top partitions")
    rows = figure_rows(read(sign_in(otto), channel, bucket))
    assert rows["Messages"] == ["3", "probe, 30 hours ago : outdated"]
    assert rows["Tombstones, by a full read"] == ["70", "probe, 30 hours ago : outdated"]
    assert rows["Share of tombstones"][0] == "95.9 %"
    assert rows["First page of this bucket"] == ["2.4 ms", ANY]
    # That of the channel is another figure, on another page.
    assert "Newest page" not in rows
    assert rows["Size"] == ["1.2 MB", ANY]
    for label, source in (("First page of this bucket", "probe"), ("Size", "top partitions")):
        assert re.fullmatch(rf"{source}, (just now|\d+ seconds? ago)", rows[label][1])


def test_the_page_begins_with_the_state_of_the_channel(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    assert "Unknown. The newest page was never measured." in read(sign_in(otto), channel)
    note(channel.pk, 300, newest_page_us=2_410, newest_page_rows=51, newest_page_tombstones=0)
    page = "The newest page reads 51\u00a0rows and 0\u00a0tombstones in 2.4\u00a0ms."
    sentence = f"Healthy so far. {page} Tombstones of its buckets were never counted."
    assert sentence in read(sign_in(otto), channel)
    note(channel.pk, 300, tombstones=7)
    assert f"Healthy. {page}" in read(sign_in(otto), channel)
    note(channel.pk, 300, newest_page_us=2_410, newest_page_tombstones=0)
    assert "Healthy. The newest page reads 0\u00a0tombstones in 2.4\u00a0ms." in read(sign_in(otto), channel)


def test_the_chart_of_page_times_has_a_line_where_pages_begin_to_be_slow(otto: User, sign_in: SignIn) -> None:
    channel, today, client = make_channel(), postgres_now().date(), sign_in(otto)
    limit_in_legend = re.compile(r'<path class="limit"[^>]*></svg>\s*limit\s*</span>')
    ChannelDay.objects.create(channel_id=channel.pk, day=today - dt.timedelta(days=1), read_ms=1.4)
    assert not limit_in_legend.search(read(client, channel))
    ChannelDay.objects.create(channel_id=channel.pk, day=today, read_ms=31.4)
    html = read(client, channel)
    assert limit_in_legend.search(html)
    chart = html[html.index("Newest page, time to read</figcaption>") :]
    assert re.search(r'class="limit".*?class="amount over"[^>]*>20 ms<', chart[: chart.index("</svg>")], re.DOTALL)


@pytest.mark.parametrize("severity", Severity)
def test_a_notice_of_a_finding_has_the_color_of_its_severity(severity: Severity, otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    open_finding(HEAVY_BUCKET, f"{channel.pk}:300", Problem(severity, "A full read scans 61,204 tombstones."))
    try:
        html = read(sign_in(otto), channel)
    finally:
        close_finding(HEAVY_BUCKET, f"{channel.pk}:300")
    (notice,) = re.findall(r'<div class="notice finding-notice (\w+)">\s*<p>\s*<span class="chip (\w+)">', html)
    assert notice == (severity.name.lower(),) * 2
    # What it is about may be older than that.
    assert re.search(r"Found (just now|\d+ \w+ ago)", plain(html))
    assert "since" not in plain(html[html.index('<div class="notice') :].split("</p>")[0])


def test_a_finding_about_missing_messages_leads_to_the_purge_and_is_acknowledged_in_place(
    ada: User, sign_in: SignIn
) -> None:
    channel, client = make_channel(), sign_in(ada)
    lost = Problem(Severity.CRITICAL, "2 messages are missing after a purge.", {"purge": "47"})
    finding = open_finding(MISSING_SURVIVORS, f"{channel.pk}:300:47.0", lost)
    try:
        of_channel, of_bucket, other = (read(client, channel, bucket) for bucket in (None, 300, 301))
    finally:
        path = f"/findings/{finding.pk}/acknowledge/"
        answer = client.post(path, {"at_channel": "1"})
    bucket = f"/channels/{channel.pk}/health/300/"
    for html, links in ((of_channel, ["/purges/47/", bucket]), (of_bucket, ["/purges/47/"])):
        notice = html[html.index('<div class="notice finding-notice critical">') :].split("</form>\n    </div>")[0]
        assert re.findall(r'<a class="button small" href="([^"]+)">', notice) == links
        # The page of the bucket has its actions below.
        repair = [] if html is of_bucket else [f"{bucket}repair/"]
        assert re.findall(r' action="([^"]+)"', notice) == [*repair, path]
    assert "Messages missing. See the finding below." in of_channel
    assert "finding-notice" not in other
    assert answer["Location"] == f"/channels/{channel.pk}/health/"
    assert "finding-notice" not in read(client, channel)


def test_the_worst_buckets_come_first(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    for bucket, dead in ((300, 150), (301, 80_000), (302, 1_500), (303, 5)):
        ledger.ensure_row(channel.pk, bucket)
        note(channel.pk, bucket, tombstones=dead)
    html = read(sign_in(otto), channel)
    worst = html[html.index('aria-labelledby="worst"') :]
    worst = worst[: worst.index("</section>")]
    assert re.findall(r"health/(\d+)/", worst) == ["301", "302", "300"]
    # A range of days does not break at its dash.
    assert f'<span class="nowrap">{format_days(*bucket_days(301))}</span>' in worst


def test_purges_that_touched_a_bucket_are_linked_from_it_and_marked_in_the_history(
    previewed: PreviewedPurge, otto: User, mona: User, sign_in: SignIn
) -> None:
    purge = purge_now(mona, by_victor(previewed.channel))
    assert purge.state == PurgeState.DONE
    ChannelDay.objects.create(channel_id=previewed.channel.pk, day=postgres_now().date(), tombstones=6, read_ms=2.5)
    client = sign_in(otto)
    html = read(client, previewed.channel, bucket_of(previewed.ids[0]))
    assert f'href="/purges/{purge.pk}/"' in html
    assert "6 messages deleted here" in plain(html)
    history = read(client, previewed.channel)
    assert f"<title>purge {purge.pk} deleted 6 messages</title>" in history
    assert f"purge {purge.pk} deleted 6 messages" in plain(history[history.index("Purges and repairs") :])
    assert "Highest: 2.5 ms" in history


def test_a_bucket_deleted_as_a_whole_says_why_it_has_no_tombstones(otto: User, mona: User, sign_in: SignIn) -> None:
    client, whole = sign_in(otto), "by one delete of the whole bucket, which leaves no tombstone for each message"
    for count, is_whole in ((6, False), (200, True)):
        channel, ids = make_channel(), old_ids(count)
        write(channel, ids)
        purge_now(mona, everything(channel))
        text = plain(read(client, channel, bucket_of(ids[0])))
        assert f"{count} messages deleted here" in text
        assert (whole in text) is is_whole


def test_links_lead_to_fewer_days_of_the_history(otto: User, sign_in: SignIn) -> None:
    channel, today = make_channel(), postgres_now().date()
    for ago, tombstones in ((0, 61), (20, 62), (60, 63)):
        day = today - dt.timedelta(days=ago)
        ChannelDay.objects.create(channel_id=channel.pk, day=day, tombstones=tombstones)
    client = sign_in(otto)
    for days, shown in (("", 3), ("?days=90", 3), ("?days=30", 2), ("?days=7", 1)):
        html = client.get(f"/channels/{channel.pk}/health/{days}").content.decode()
        assert html.count('<g class="day">') == shown
        number = days.removeprefix("?days=") or "90"
        assert f"Last {number} days" in html
        assert re.findall(r'href="\?days=(\d+)#history" aria-current="true"', html) == [number]
    for days in ("8", "-7", "7.0", "٧", "%00"):
        refused = client.get(f"/channels/{channel.pk}/health/?days={days}")
        assert refused.status_code == 400
        assert "7, 30 or 90 days" in refused.content.decode()


def test_an_open_finding_of_a_bucket_is_on_its_page_and_its_channel_s_page(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    ledger.ensure_row(channel.pk, 300)
    open_finding("heavy bucket", f"{channel.pk}:300", Problem(Severity.WARNING, "This one is <b>heavy</b>."))
    client = sign_in(otto)
    for html in (read(client, channel), read(client, channel, 300)):
        assert "This one is &lt;b&gt;heavy&lt;/b&gt;." in html
    assert "This one is" not in read(client, channel, 301)


@pytest.mark.parametrize(
    ("action", "job"),
    [("probe", "probe"), ("verify", "verify"), ("measure", "measure"), ("repair", "repair_bucket"),
     ("rewrite", "rewrite")],
)  # fmt: skip
def test_each_action_is_a_run_with_its_requester_and_is_not_started_twice(
    action: str, job: str, otto: User, sign_in: SignIn
) -> None:
    channel = make_channel()
    ledger.ensure_row(channel.pk, -5)
    client = sign_in(otto)
    path = f"/channels/{channel.pk}/health/-5/"
    assert f'action="{path}{action}/"' in read(client, channel, -5)
    assert client.get(f"{path}{action}/").status_code == 405
    assert client.post(f"{path}{action}/")["Location"] == path
    run = JobRun.objects.get(job=job, subject=f"{channel.pk}:-5")
    assert run.requested_by == otto
    html = read(client, channel, -5)
    assert f'href="/maintenance/runs/{run.pk}/"' in html
    # The run is queued, so the part of the page that changes is polled again.
    assert f'hx-get="{path}live/"' in html
    assert client.post(f"{path}{action}/").status_code == 400
    JobRun.objects.filter(pk=run.pk).update(state=RunState.STOPPED)
    assert client.get(f"{path}live/")["HX-Trigger"] == "reloadPage"


def test_the_newest_page_of_a_channel_is_probed_by_a_run(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    client = sign_in(otto)
    client.post(f"/channels/{channel.pk}/health/probe/")
    run = JobRun.objects.get(job="probe", subject=str(channel.pk))
    assert f'href="/maintenance/runs/{run.pk}/"' in read(client, channel)
    JobRun.objects.filter(pk=run.pk).update(state=RunState.STOPPED)


def test_actions_come_before_what_they_act_on(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, ids := old_ids(3))
    html = read(sign_in(otto), channel, bucket_of(ids[0]))
    assert html.index('id="actions"') < html.index('id="metrics"') < html.index('id="purges"')


def test_the_recommended_action_comes_first_and_is_the_only_primary_one(
    otto: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    bucket, client = bucket_of(ids[0]), sign_in(otto)

    def read_actions() -> tuple[list[str], list[str]]:
        html = read(client, channel, bucket)
        listed = html[html.index('id="actions"') : html.index('id="metrics"')]
        summaries = re.findall(r"<summary( class=\"[^\"]*primary\")?>\s*(.*?)\s*</summary>", listed)
        return [name for _primary, name in summaries], [name for primary, name in summaries if primary]

    names, primary = read_actions()
    assert names[0] == "Check for live rows (recommended)"
    assert primary == names[:1]

    note(channel.pk, bucket, tombstones=61_204, live_rows=3)
    note_deletes(channel.pk, bucket, 1)
    now = postgres_now()
    # Deleted so many days ago, repaired so many days ago.
    for deleted, repaired, expected in ((1, None, "Repair"), (1, 0, "Rewrite"), (90, 0, "Compact")):
        last_at = now - dt.timedelta(days=deleted)
        BucketDeletes.objects.filter(channel_id=channel.pk).update(last_at=last_at)
        began_at = None if repaired is None else now - dt.timedelta(days=repaired)
        monkeypatch.setattr(
            compaction, "last_repairs_of", lambda keys, began_at=began_at: dict.fromkeys(keys, began_at)
        )
        names, primary = read_actions()
        assert primary == names[:1] == [f"{expected} (recommended)"]

    note(channel.pk, bucket, tombstones=3, live_rows=3)
    assert read_actions()[1] == []


def test_the_error_of_a_failure_is_red_only_while_it_matters(
    otto: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    bucket, client, now = bucket_of(ids[0]), sign_in(otto), postgres_now()
    note_deletes(channel.pk, bucket, 1)
    BucketDeletes.objects.filter(channel_id=channel.pk).update(last_at=now - dt.timedelta(days=30))
    repaired_at: dict[tuple[int, int], dt.datetime] = {}
    monkeypatch.setattr(compaction, "last_repairs_of", lambda keys: {key: repaired_at.get(key) for key in keys})

    def end(job: str, state: RunState, *, hours_ago: int, error: str = "") -> None:
        at = now - dt.timedelta(hours=hours_ago)
        JobRun.objects.create(
            job=job, subject=f"{channel.pk}:{bucket}", state=state, due_at=at, started_at=at, ended_at=at, error=error
        )

    def failures() -> list[tuple[str, bool, bool]]:
        """Return error, and whether chip and error are red, of each failed run. The state looks the same everywhere."""
        html = read(client, channel, bucket)
        runs = html[html.index('id="recent"') :].split("</section>")[0].split("<li>")[1:]
        past = r"\s*(?:When it ran: )?"
        shown = rf'class="chip (failed)?">failed<.*<span class="(run-error)?[^"]*small">{past}([^<]*?)\s*</'
        found = [re.search(shown, one, re.DOTALL) for one in runs]
        return [(one[3], bool(one[1]), bool(one[2])) for one in found if one]

    end("compact", RunState.FAILED, hours_ago=5, error="Node 3 is down.")
    end("measure", RunState.DONE, hours_ago=4)
    assert failures() == [("Node 3 is down.", True, True)]
    # It failed again since.
    end("compact", RunState.FAILED, hours_ago=3, error="Repair it first.")
    assert failures() == [("Repair it first.", True, True), ("Node 3 is down.", True, False)]
    # Meanwhile, a repair covers the last delete.
    repaired_at[channel.pk, bucket] = now
    assert failures() == [("Repair it first.", True, False), ("Node 3 is down.", True, False)]
    assert "A repair now covers the last delete here" in read(client, channel, bucket)
    repaired_at.clear()
    assert failures()[0] == ("Repair it first.", True, True)
    end("compact", RunState.DONE, hours_ago=1)
    assert failures() == [("Repair it first.", True, False), ("Node 3 is down.", True, False)]


def test_unavailable_actions_show_the_reason(otto: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    bucket = bucket_of(ids[0])
    note_deletes(channel.pk, bucket, 1)
    html = read(sign_in(otto), channel, bucket)
    assert f'action="/channels/{channel.pk}/health/{bucket}/compact/"' not in html
    assert "Repair it first." in plain(html)
    never_written = plain(read(sign_in(otto), channel, bucket - 1))
    assert never_written.count("Unavailable: Nothing was ever written to this bucket.") == 6


def test_a_bucket_before_2015_has_a_page_and_a_future_one_has_none(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    client = sign_in(otto)
    assert "2014" in plain(read(client, channel, -2))
    read(client, channel, bucket_at(now_ms()) + 1, status=404)
    read(client, channel, -999_999, status=404)


def test_operators_see_the_link_and_moderators_do_not(mona: User, otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    link = f'href="/channels/{channel.pk}/health/"'
    assert link in sign_in(otto).get(f"/channels/{channel.pk}/").content.decode()
    moderator = sign_in(mona)
    assert link not in moderator.get(f"/channels/{channel.pk}/").content.decode()
    read(moderator, channel, status=403)
    read(moderator, channel, 300, status=403)


def test_the_admin_page_of_a_channel_shows_health_only_to_operators(mona: User, otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    ledger.ensure_row(channel.pk, 300)
    note(channel.pk, 300, tombstones=4_321)
    refresh_summaries([channel.pk])
    page, listed = f"/admin/chatstore/channel/{channel.pk}/change/", f"/admin/chatstore/channel/?q={channel.pk}"
    operator, moderator = sign_in(otto), sign_in(mona)
    assert "0 of 1" in operator.get(page).content.decode()
    for path in (page, listed):
        assert "too many tombstones" in operator.get(path).content.decode()
        assert "4,321 on " in operator.get(path).content.decode()
    for path in (page, listed):
        assert f"/channels/{channel.pk}/health/" in operator.get(path).content.decode()
        html = moderator.get(path).content.decode()
        assert "4,321" not in html
        assert "/health/" not in html


def test_the_admin_page_of_a_channel_has_the_findings_that_its_state_follows_from(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    refresh_summaries([channel.pk])
    page, client = f"/admin/chatstore/channel/{channel.pk}/change/", sign_in(otto)
    assert "Open findings" in plain(client.get(page).content.decode())
    open_finding(MISSING_SURVIVORS, f"{channel.pk}:300", Problem(Severity.CRITICAL, "3 messages are missing <here>."))
    try:
        html = client.get(page).content.decode()
    finally:
        close_finding(MISSING_SURVIVORS, f"{channel.pk}:300")
    assert "messages missing" in html
    assert "3 messages are missing &lt;here&gt;." in html
    assert "3 messages are missing" not in client.get(page).content.decode()


HOSTILE = "<script>alert(1)</script>\u202e\x1b{{ 7|add:7 }}"


def test_a_hostile_channel_breaks_none_of_these_pages(otto: User, mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(guild=HOSTILE, name=HOSTILE, category=HOSTILE), old_ids(8)
    write(channel, ids, content=HOSTILE)
    purge_now(mona, by_victor(channel))
    bucket = bucket_of(ids[0])
    note(channel.pk, bucket, tombstones=9, page_us=4)
    JobRun.objects.create(
        job="probe", subject=f"{channel.pk}:{bucket}", due_at=postgres_now(), state=RunState.FAILED, error=HOSTILE
    )
    client = sign_in(otto)
    for html in (read(client, channel), read(client, channel, bucket)):
        check_harmless(html)
        assert "&lt;script&gt;alert(1)" in html
        assert "{{ 7|add:7 }}" in html


def test_a_queued_purge_is_shown_as_pending_work(previewed: PreviewedPurge, otto: User, sign_in: SignIn) -> None:
    confirm(previewed.moderator, previewed.purge)
    html = read(sign_in(otto), previewed.channel, bucket_of(previewed.ids[0]))
    assert "incomplete" in plain(html)


def test_the_page_of_200_buckets_is_fast(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    newest = bucket_at(now_ms())
    for bucket in range(newest - 200, newest):
        ledger.ensure_row(channel.pk, bucket)
        note(channel.pk, bucket, tombstones=bucket % 7, live_rows=100, page_us=2_000, bytes=10_000)
    client = sign_in(otto)
    html = read(client, channel)
    assert html.count('class="is-') >= 200
    seconds = []
    for _ in range(3):
        began = time.process_time()
        read(client, channel)
        seconds.append(time.process_time() - began)
    # Processor time, which does not include that of other tests.
    assert min(seconds) < 0.3
