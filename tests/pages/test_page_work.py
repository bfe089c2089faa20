"""Work for a page does not grow with the number of its rows: no template, no query and no read for each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from django.db import connection
from django.template import Template
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolvers

from chatstore.domain.roles import Role
from chatstore.domain.runs import Severity
from chatstore.models import Channel, ChatUser, Finding
from chatstore.models.users import User
from chatstore.operations.bucket_jobs import compaction
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import HEAVY_BUCKET
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import ledger
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.operations.erasure.requests import request_erasure
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.preview.samples import SAMPLES
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.chatstore.recorded_statements import record_statements
from tests.chatstore.reports import report
from tests.moderation.channels import (
    VICTOR,
    by_victor,
    confirm,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request

SignIn = Callable[[User], Client]


class Work:
    """Cost of one request. queries: of Postgres, their SQL. reads: of Cassandra, their CQL."""

    templates = 0
    urls = 0
    queries: Sequence[str] = ()
    reads: Sequence[str] = ()

    def __repr__(self) -> str:
        return (
            f"{self.templates} templates, {self.urls} URLs, {len(self.queries)} queries, {len(self.reads)} reads: "
            f"{[sql[:300] for sql in self.queries]}"
        )

    def count_from(self, table: str) -> int:
        """Return the number of queries and reads of a table."""
        return sum(f'FROM "{table}"' in sql or f"FROM {table} " in sql for sql in (*self.queries, *self.reads))


@pytest.fixture
def work_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Client, str], Work]:
    """Return a function that counts rendered templates, resolved URLs and queries of a request."""
    work = Work()
    render, reverse = Template._render, resolvers.URLResolver._reverse_with_prefix  # type: ignore[attr-defined]

    def count_render(*args: object, **kwargs: object) -> object:
        work.templates += 1
        return render(*args, **kwargs)

    def count_reverse(*args: object, **kwargs: object) -> object:
        work.urls += 1
        return reverse(*args, **kwargs)

    @contextmanager
    def counting() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(Template, "_render", count_render)
            patch.setattr(resolvers.URLResolver, "_reverse_with_prefix", count_reverse)
            yield

    def measure(client: Client, path: str) -> Work:
        nonlocal work
        # The first request fills caches.
        assert client.get(path).status_code == 200
        work = Work()
        with counting(), CaptureQueriesContext(connection) as captured, record_statements() as sent:
            assert client.get(path).status_code == 200
        work.queries, work.reads = [query["sql"] for query in captured], sent
        return work

    return measure


def of_authors_in_channels(number: int) -> Selection:
    """Write messages of as many authors in each of as many channels; select all of them."""
    channels, authors = [make_channel() for _ in range(number)], range(VICTOR, VICTOR + number)
    ids = old_ids(2 * number)
    for channel in channels:
        for at, author in enumerate(authors):
            write(channel, ids[2 * at : 2 * at + 2], author=author)
    return Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author(tuple(authors)))


def assert_same(few: Work, many: Work) -> None:
    assert many.templates == few.templates, (few, many)
    assert many.urls == few.urls, (few, many)
    assert len(many.queries) == len(few.queries), (few, many)


def test_a_timeline_of_many_messages_costs_no_more_templates_and_queries(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    few, many = make_channel(), make_channel()
    write(few, old_ids(2), content="https://a.example <b> **x**")
    write(many, old_ids(45), content="https://a.example <b> **x**")
    client = sign_in(mona)
    # Each is listed beside the other as opened lately.
    client.get(f"/channels/{many.pk}/")
    assert_same(work_of(client, f"/channels/{few.pk}/"), work_of(client, f"/channels/{many.pk}/"))


def test_a_timeline_of_many_gaps_costs_no_more_templates_and_queries(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    few, many = make_channel(), make_channel()
    client = sign_in(mona)
    for channel, number in ((few, 4), (many, 40)):
        ids = old_ids(number)
        write(channel, ids[::2], author=VICTOR + 1)
        write(channel, ids[1::2])
        purge_now(mona, by_victor(channel))
        client.get(f"/channels/{channel.pk}/")
    assert_same(work_of(client, f"/channels/{few.pk}/"), work_of(client, f"/channels/{many.pk}/"))


def test_many_channels_beside_a_timeline_cost_no_more_templates_and_queries(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    alone, among_many = (make_channel(guild="Harbour") for _ in range(2))
    for channel, others in ((alone, 1), (among_many, 40)):
        Channel.objects.bulk_create(
            Channel(pk=channel.pk + 1 + n, guild=channel.guild, name=f"pier-{n}") for n in range(others)
        )
    client = sign_in(mona)
    client.get(f"/channels/{among_many.pk}/")
    assert_same(work_of(client, f"/channels/{alone.pk}/"), work_of(client, f"/channels/{among_many.pk}/"))


def test_the_samples_of_a_preview_cost_no_more_templates(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    works = []
    # At most as many as are shown of one end.
    for number in (4, SAMPLES):
        channel = make_channel()
        write(channel, old_ids(number))
        purge = preview(mona, by_victor(channel))
        works.append(work_of(sign_in(mona), f"/purges/{purge.pk}/"))
    assert_same(*works)


def test_strips_of_several_channels_cost_no_more_queries(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    """The page of a purge that was partly restored shows everything that it can."""
    works = []
    for number in (2, 4):
        channels = [make_channel() for _ in range(number)]
        for channel in channels:
            write(channel, old_ids(5))
        selection = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))
        purge = run_to_end(confirm(mona, preview(mona, selection)))
        request_undo(purge.pk, moderator=mona, part=UndoPart(channel_ids=(channels[0].pk,)), reason="Appeal accepted")
        run_to_end(purge)
        works.append(work_of(sign_in(mona), f"/purges/{purge.pk}/"))
    assert len(works[0].queries) == len(works[1].queries), works
    for number, work in zip((2, 4), works, strict=True):
        assert work.count_from("bucket_ledger") == number


def test_channels_and_authors_of_a_purge_cost_no_more_templates(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    works = []
    # At least as many as the receipt names.
    for number in (3, 6):
        purge = purge_now(mona, of_authors_in_channels(number))
        works.append(work_of(sign_in(mona), f"/purges/{purge.pk}/"))
    assert_same(*works)


def test_several_undos_cost_no_more_queries(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    works = []
    for number in (1, 3):
        purge = purge_now(mona, of_authors_in_channels(5))
        for author in range(VICTOR, VICTOR + number):
            request_undo(purge.pk, moderator=mona, part=UndoPart(author_ids=(author,)), reason="Appeal accepted")
            run_to_end(purge)
        works.append(work_of(sign_in(mona), f"/purges/{purge.pk}/"))
    assert len(works[0].queries) == len(works[1].queries), works


def test_a_purge_reads_its_undos_and_its_authors_once(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    purge = purge_now(mona, of_authors_in_channels(2))
    request_undo(purge.pk, moderator=mona, part=UndoPart(author_ids=(VICTOR,)), reason="Appeal accepted")
    run_to_end(purge)
    work = work_of(sign_in(mona), f"/purges/{purge.pk}/")
    for table in ("moderation_undo", "chatstore_chatuser", "chatstore_channel", "moderation_erasure"):
        assert work.count_from(table) == 1, (table, work)
    # The buckets of the channels, the plan of the first ones, and the holds that cover some.
    assert work.count_from("moderation_manifestbucket") == 3, work


def test_a_purge_of_which_nothing_failed_looks_for_no_failures(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    purge = purge_now(mona, of_authors_in_channels(2))
    request_undo(purge.pk, moderator=mona, part=UndoPart(author_ids=(VICTOR,)), reason="Appeal accepted")
    run_to_end(purge)
    work = work_of(sign_in(mona), f"/purges/{purge.pk}/")
    assert work.count_from("moderation_undostep") == 0, work


def test_samples_read_the_ledger_that_the_strip_has_read(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "CACHE_SECONDS", 60.0)
    purge = preview(mona, of_authors_in_channels(3))
    work = work_of(sign_in(mona), f"/purges/{purge.pk}/")
    assert work.count_from("bucket_ledger") == 3, work.reads
    assert work.count_from("messages") > 0


def test_a_queue_of_many_reports_costs_no_more_reads(sign_in: SignIn, work_of: Callable[[Client, str], Work]) -> None:
    # Raids elsewhere, which other tests begin and end meanwhile, are not read for a moderator of one guild.
    channel = make_guild_channel("Harbour")
    moderator = member("mona", Role.MODERATOR, channel)
    write(channel, old_ids(9))
    first, *_ = [report(channel, message_id) for message_id in old_ids(9)[:4]]
    # The names of further reporters are one more statement.
    report(channel, old_ids(9)[0], reporter=74)
    few = work_of(sign_in(moderator), f"/reports/{first.pk}/")
    for message_id in old_ids(9):
        report(channel, message_id, reporter=74)
    many = work_of(sign_in(moderator), f"/reports/{first.pk}/")
    assert_same(few, many)
    assert len(many.reads) == len(few.reads), (few.reads, many.reads)


def test_home_describes_all_its_purges_together(sign_in: SignIn, work_of: Callable[[Client, str], Work]) -> None:
    channel = make_guild_channel("Harbour")
    limit(channel, messages_without_approval=10)
    requester, lead = member("mona", Role.MODERATOR, channel), member("lena", Role.LEAD, channel)
    finished = run_to_end(confirm(requester, preview_some(requester, 9, channel)))
    request_erasure(finished.pk, moderator=member("lea", Role.LEAD, channel), reason="request 71")
    request(requester, preview_some(requester, 20, channel))
    work = work_of(sign_in(lead), "/")
    # Of the selections, and of the authors of the newest messages.
    assert work.count_from("chatstore_chatuser") <= 2, work
    assert work.count_from("moderation_purgeapproval") == 1, work
    assert work.count_from("chatstore_reportcase") == 1, work


def test_a_user_of_many_channels_costs_few_reads(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    works = []
    for number in (20, 60):
        account = ChatUser.objects.create(pk=make_channel().pk, name="everywhere")
        for at in range(number):
            write(make_channel(), old_ids(2, buckets_ago=3 + at // 10), author=account.pk)
        works.append(work_of(sign_in(mona), f"/users/{account.pk}/"))
    few, many = (work.count_from("messages") for work in works)
    # The newest messages are searched channel by channel, the others counted ten channels at a time.
    assert many <= few + 12, works


def test_many_purges_of_a_held_user_cost_no_more_queries(
    mona: User, sign_in: SignIn, work_of: Callable[[Client, str], Work]
) -> None:
    works = []
    for number in (2, 4):
        channel, ids = make_channel(), old_ids(number)
        account = ChatUser.objects.create(pk=channel.pk, name="held")
        write(channel, ids, author=account.pk)
        selections = [Selection(channel_ids=(channel.pk,), message_ids=(message_id,)) for message_id in ids]
        confirmed = [confirm(mona, preview(mona, selection)) for selection in selections]
        place_hold(HoldRequest(author=str(account.pk)), reason="case 1", actor=mona)
        for purge in confirmed:
            run_to_end(purge)
        path = f"/users/{account.pk}/"
        works.append(work_of(sign_in(mona), path))
    few, many = works
    assert len(many.queries) == len(few.queries), works
    assert sign_in(mona).get(path).content.decode().count(">kept by a hold</span>") == 4


@pytest.mark.parametrize("path", ["/", "/health/"])
def test_many_findings_about_buckets_cost_no_more_queries_and_reads(
    path: str, otto: User, sign_in: SignIn, work_of: Callable[[Client, str], Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    repaired_at = postgres_now()
    monkeypatch.setattr(compaction, "last_repairs_of", lambda keys: dict.fromkeys(keys, repaired_at))
    client, works = sign_in(otto), []
    for number in (2, 4):
        Finding.objects.open().update(closed_at=postgres_now())
        for channel in [make_channel() for _ in range(number)]:
            # Until gc_grace has passed, a rewrite is recommended if pages read the bucket.
            ledger.ensure_row(channel.pk, -3)
            note_deletes(channel.pk, -3, 1, sent_by=repaired_at - dt.timedelta(hours=1))
            problem = Problem(Severity.CRITICAL, "a bucket is heavy", {"tombstones": 61_204})
            open_finding(HEAVY_BUCKET, f"{channel.pk}:-3", problem)
        works.append(work_of(client, path))
        assert client.get(path).content.decode().count("/rewrite/") == number
    Finding.objects.open().update(closed_at=postgres_now())
    few, many = works
    assert len(many.queries) == len(few.queries), works
    assert many.count_from("bucket_figures") == few.count_from("bucket_figures"), works
