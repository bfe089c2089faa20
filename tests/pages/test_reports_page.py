"""The page of reports: the queue, the case in hand with its message, decisions without a script, hostile text inert."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from chatstore.models import Channel, ChatUser, ReportCase
from chatstore.models.users import User
from moderation.domain.selection import Selection
from moderation.models import Purge
from tests.chatstore.channels import fresh_id
from tests.chatstore.reports import report
from tests.conftest import make_user
from tests.moderation.channels import make_channel, old_ids, purge_now, run_to_end, write
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]

HOSTILE = "<script>alert(1)</script>\u202e"


def reported_channel(author: int, *, name: str = "room") -> tuple[Channel, list[ReportCase]]:
    channel = make_channel()
    Channel.objects.filter(pk=channel.pk).update(name=name)
    write(channel, old_ids(3), author=author, content="buy")
    return channel, [report(channel, message_id, author=author, text=f"see {name}") for message_id in old_ids(3)[:2]]


def test_a_case_shows_the_message_its_reports_and_the_record_of_its_author(mona: User, sign_in: SignIn) -> None:
    author = fresh_id()
    handle = f"zoe{author}"
    ChatUser.objects.create(pk=author, name=handle, display_name="Zoë")
    _channel, cases = reported_channel(author)
    page = sign_in(mona)
    page.post(f"/users/{author}/notes/", {"text": "warned on 3 May"})
    html = page.get(f"/reports/{cases[1].pk}/").content.decode()
    assert "Message by <bdi>Zoë</bdi>, reported for spam" in re.sub(r"\s+", " ", html)
    assert "author: 2 messages reported this week" in html
    assert f"buy {old_ids(3)[1]}" in html
    assert "see room" in html
    assert "warned on 3 May" in html
    assert f'href="/reports/{cases[0].pk}/"' in html
    assert 'aria-current="true"' in html
    assert html.count(f'<b><bdi>Zoë</bdi></b>\n<bdi class="handle quiet">@{handle}</bdi>') == len(cases)
    # A name with this class opens the panel.
    assert f'<a class="author" href="/users/{author}/"><bdi>Zoë</bdi></a>' in html


def test_a_row_shows_the_first_words_of_its_message_or_that_it_is_deleted(mona: User, sign_in: SignIn) -> None:
    channel, cases = reported_channel(fresh_id())
    page, path = sign_in(mona), f"/reports/{cases[0].pk}/"
    texts = rows_of(page.get(path).content.decode())
    assert [texts[case.pk] for case in cases] == [f"buy {message_id}" for message_id in old_ids(3)[:2]]
    purge_now(mona, Selection(channel_ids=(channel.pk,), message_ids=(cases[1].message_id,)))
    never = report(channel, old_ids(9)[8], author=None)
    texts = rows_of(page.get(path).content.decode())
    assert [texts[case.pk] for case in (*cases, never)] == [texts[cases[0].pk], "message deleted", "not in the channel"]
    assert texts[cases[0].pk] == f"buy {old_ids(3)[0]}"


def test_home_offers_reports_to_those_who_may_resolve_them_for_review(mona: User, sign_in: SignIn) -> None:
    reported_channel(fresh_id())
    auditor = make_user("aron", group="auditors")
    review, view = "Review reports", "View reports"
    for user, offered, other in ((mona, review, view), (auditor, view, review)):
        html = sign_in(user).get("/").content.decode()
        assert offered in html
        assert other not in html


def test_other_reported_messages_without_a_decision_are_not_divided(mona: User, sign_in: SignIn) -> None:
    author = fresh_id()
    channel, (first, second) = reported_channel(author)
    third = report(channel, old_ids(3)[2], author=author)
    page = sign_in(mona)

    def record() -> str:
        return others_reported(page.get(f"/reports/{first.pk}/").content.decode())

    assert record() == "2"
    page.post(f"/reports/{second.pk}/resolve/", {"resolution": "kept"})
    assert record() == "2 (of these 1 kept)"
    page.post(f"/reports/{third.pk}/resolve/", {"resolution": "removed"})
    assert record() == "2 (of these 1 deleted, 1 kept)"


def others_reported(html: str) -> str:
    """Return how many other messages of the author were reported, and what was decided."""
    fact = html.split("Other reported messages</dt>")[1].partition("</dd>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", fact).split())


def rows_of(html: str) -> dict[int, str]:
    """Return the text of the message of each case in the list."""
    found = re.findall(r'href="/reports/(\d+)/".*?case-text">(?:<bdi>)?([^<]*)<', html, re.DOTALL)
    return {int(pk): text for pk, text in found}


def test_deleting_opens_the_next_case_and_links_to_the_purge(mona: User, sign_in: SignIn) -> None:
    _, cases = reported_channel(fresh_id())
    answer = sign_in(mona).post(f"/reports/{cases[0].pk}/resolve/", {"resolution": "removed"}, follow=True)
    html = answer.content.decode()
    cases[0].refresh_from_db()
    assert (cases[0].resolution, cases[0].reason) == ("removed", "Reported: spam")
    assert f'href="/purges/{cases[0].purge_id}/"' in html
    assert "Message deleted: report in" in html
    assert others_reported(html) == "1 (of these 1 deleted)"


def test_a_message_is_not_said_to_stay_while_its_purge_waits(mona: User, sign_in: SignIn) -> None:
    channel, cases = reported_channel(fresh_id())
    page, path = sign_in(mona), f"/reports/{cases[0].pk}/"
    paths = (path, f"/channels/{channel.pk}/{cases[0].message_id}/")

    def chips() -> list[list[str]]:
        found = (page.get(each).content.decode() for each in paths)
        return [re.findall(r'class="chip [\w-]*">((?:in the channel|to be deleted|deleted))<', html) for html in found]

    assert chips() == [["in the channel"]] * 2
    page.post(f"{path}resolve/", {"resolution": "removed"})
    assert chips() == [["to be deleted"]] * 2
    run_to_end(Purge.objects.get(moderator=mona))
    assert chips() == [["deleted"]] * 2
    (row,) = re.findall(rf'href="{path}".*?</li>', page.get("/reports/?state=resolved").content.decode(), re.DOTALL)
    assert row.count("message deleted") == 1


def test_a_message_that_a_purge_deleted_meanwhile_is_resolved_as_deleted(mona: User, sign_in: SignIn) -> None:
    channel, cases = reported_channel(fresh_id())
    purge = purge_now(mona, Selection(channel_ids=(channel.pk,), message_ids=tuple(old_ids(3))))
    page, path = sign_in(mona), f"/reports/{cases[0].pk}/"
    html = page.get(path).content.decode()
    assert "Already deleted" in html
    assert 'value="kept"' not in html
    page.post(f"{path}resolve/", {"resolution": "removed"})
    cases[0].refresh_from_db()
    assert (cases[0].resolution, cases[0].purge_id) == ("removed", purge.pk)
    assert not Purge.objects.filter(pk__gt=purge.pk, moderator=mona).exists()


def test_each_resolution_is_explained_where_it_is_chosen(mona: User, sign_in: SignIn) -> None:
    channel, cases = reported_channel(fresh_id())
    page, path = sign_in(mona), f"/reports/{cases[0].pk}/"

    def explained() -> list[str]:
        before, _, html = page.get(path).content.decode().rpartition('class="hint resolutions"')
        listed = html.split("</dl>")[0]
        # Folded, and as a description of each button.
        assert "<details" in before
        assert "</details>" not in before.rpartition("<details")[2]
        buttons = before[before.index('name="resolution"') :]
        assert re.findall(r' title="([^"]+)"', buttons) == re.findall(r"<dd>([^<]+)</dd>", listed)
        return re.findall(r"<dt>([^<]+)</dt>", listed)

    assert explained() == ["Delete message", "Keep message", "No action"]
    purge_now(mona, Selection(channel_ids=(channel.pk,), message_ids=(cases[0].message_id,)))
    assert explained() == ["Already deleted", "No action"]


def test_a_case_that_another_moderator_claimed_offers_no_decision(mona: User, lena: User, sign_in: SignIn) -> None:
    _, cases = reported_channel(fresh_id())
    path = f"/reports/{cases[0].pk}/"
    assert sign_in(mona).post(f"{path}claim/").status_code == 302
    assert "You have claimed this report until" in sign_in(mona).get(path).content.decode()
    html = sign_in(lena).get(path).content.decode()
    assert f"<bdi>{mona.username}</bdi> has claimed this report" in html
    assert 'value="kept"' not in html
    refused = sign_in(lena).post(f"{path}resolve/", {"resolution": "kept"})
    assert refused.status_code == 400
    assert 'role="alert"' in refused.content.decode()


def test_hostile_names_and_texts_are_shown_as_text(mona: User, sign_in: SignIn) -> None:
    author = fresh_id()
    ChatUser.objects.create(pk=author, name=HOSTILE, display_name=HOSTILE)
    _, cases = reported_channel(author, name=HOSTILE)
    page = sign_in(mona)
    page.post(f"/users/{author}/notes/", {"text": HOSTILE})
    for path in (f"/reports/{cases[0].pk}/", f"/users/{author}/"):
        html = page.get(path).content.decode()
        check_harmless(html)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;[RLO]" in html
    page.post(f"/reports/{cases[0].pk}/resolve/", {"resolution": "kept", "reason": HOSTILE})
    check_harmless(page.get(f"/reports/{cases[0].pk}/").content.decode())
    assert page.post(f"/reports/{cases[1].pk}/resolve/", {"resolution": "kept", "reason": "\x00"}).status_code == 400
