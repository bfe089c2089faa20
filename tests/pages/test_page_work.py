"""Work for a page does not grow with the number of its rows: no template and no query for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.template import Template
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolvers

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.operations.preview.samples import SAMPLES
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import VICTOR, by_victor, confirm, make_channel, old_ids, preview, run_to_end, write

SignIn = Callable[[User], Client]


class Work:
    """Cost of one request."""

    templates = 0
    urls = 0
    queries = 0

    def __repr__(self) -> str:
        return f"{self.templates} templates, {self.urls} URLs, {self.queries} queries"


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
        with counting(), CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        work.queries = len(captured)
        return work

    return measure


def assert_same(few: Work, many: Work) -> None:
    assert (many.templates, many.urls, many.queries) == (few.templates, few.urls, few.queries), (few, many)


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
    assert works[0].queries == works[1].queries, works
