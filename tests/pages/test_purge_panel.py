"""A purge beside another page: its state, and what can be done; without the script its link leads to its page."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from chatstore.models.users import User
from moderation.domain.packing import pack_ids
from moderation.models import Purge
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.purging.controls import pause_purge, resume_purge
from moderation.operations.purging.execution import WRITTEN_AGAIN
from tests.conftest import make_user
from tests.moderation.channels import by_victor, confirm, preview, run_to_end
from tests.moderation.stored_sums import store_sums
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


def panel_of(client: Client, purge_id: int) -> str:
    response = client.get(f"/purges/{purge_id}/panel/")
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def test_it_shows_who_deleted_what_why_and_offers_to_restore(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    ended = run_to_end(confirm(previewed.moderator, previewed.purge))
    html = panel_of(sign_in(mona), ended.pk)
    assert "Deleted 6 messages" in html
    assert "<dt>Deleted</dt> <dd>6</dd>" in html
    assert "“<bdi>a test</bdi>”" in html
    facts = html.split('<dl class="facts">')[1].split("</dl>")[0]
    assert re.search(r'<dt>Reason</dt> <dd class="note-text">“<bdi>a test</bdi>”</dd>', facts)
    assert "#room (Harbour)" in html
    assert f'href="/purges/{ended.pk}/undo/"' in html
    assert "hx-trigger" not in html


def test_it_shows_why_messages_were_not_deleted(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    queued = confirm(previewed.moderator, previewed.purge)
    message = f"/channels/{previewed.channel.pk}/{previewed.victor_ids[0]}/"
    place_hold(HoldRequest(message=message), reason="case 1", actor=mona)
    html = panel_of(sign_in(mona), run_to_end(queued).pk)
    assert "<dt>Deleted</dt> <dd>5</dd>" in html
    assert "<dt>Kept by a hold</dt> <dd>1</dd>" in html


def test_it_shows_why_messages_failed_and_offers_to_retry(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    ended = run_to_end(confirm(previewed.moderator, previewed.purge))
    failed = {"deleted": 4, "failed": 2, "failed_ids": pack_ids(previewed.victor_ids[:2]), "error": WRITTEN_AGAIN}
    assert ended.steps.update(**failed) == 1
    store_sums()
    Purge.objects.filter(pk=ended.pk).update(state="done_with_failures")
    html = panel_of(sign_in(mona), ended.pk)
    reason = "They came back after each deletion, because something writes them again. Retry."
    assert html.count(reason) == 1
    assert '<div class="failed"> <dt>Failed</dt> <dd>2</dd>' in html
    assert f'action="/purges/{ended.pk}/retry/"' in html
    others = panel_of(sign_in(make_user("otto", group="operators")), ended.pk)
    assert reason in others
    assert "/retry/" not in others


def test_while_the_purge_runs_it_is_fetched_again(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    queued = confirm(previewed.moderator, previewed.purge)
    html = panel_of(sign_in(mona), queued.pk)
    assert f'hx-get="/purges/{queued.pk}/panel/?version=' in html
    assert "<progress" in html
    run_to_end(queued)


def test_those_who_may_not_purge_are_offered_nothing(previewed: PreviewedPurge, sign_in: SignIn) -> None:
    ended = run_to_end(confirm(previewed.moderator, preview(previewed.moderator, by_victor(previewed.channel))))
    html = panel_of(sign_in(make_user("otto", group="operators")), ended.pk)
    assert "Deleted 6 messages" in html
    assert "/undo/" not in html


def test_a_gap_in_a_timeline_links_to_it(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    ended = run_to_end(confirm(previewed.moderator, previewed.purge))
    html = sign_in(mona).get(f"/channels/{previewed.channel.pk}/").content.decode()
    assert f'<a href="/purges/{ended.pk}/" data-panel>View purge</a>' in html


def test_a_paused_purge_says_who_paused_it_and_when(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    queued = confirm(previewed.moderator, previewed.purge)
    pause_purge(queued.pk, moderator=mona)
    client = sign_in(mona)
    for url in (f"/purges/{queued.pk}/", f"/purges/{queued.pk}/panel/"):
        html = re.sub(r"\s+", " ", client.get(url).content.decode())
        assert re.search(rf"Paused by <bdi[^>]*>{mona.username}</bdi>, <time [^>]*>just now</time>", html)
    resume_purge(queued.pk, moderator=mona)
    assert "Paused by" not in client.get(f"/purges/{queued.pk}/").content.decode()
    run_to_end(queued)
