"""Approval of purges above a limit on the pages, and the page on which administrators set limits."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge, PurgeApproval, PurgeLimits
from moderation.templatetags.chat import draw_staff_name
from moderation.views import approving
from tests.moderation.channels import confirm
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request
from tests.pages.reading import read_page

SignIn = Callable[[User], Client]


@pytest.fixture
def purge(mona: User, channel: Channel) -> Purge:
    return preview_some(mona, 20, channel)


def at(purge: Purge) -> str:
    return f"/purges/{purge.pk}/"


def test_one_person_requests_and_a_lead_starts_the_purge(mona: User, lena: User, sign_in: SignIn, purge: Purge) -> None:
    first, second = sign_in(mona), sign_in(lena)
    shown = read_page(first, at(purge))
    assert "Request approval" in shown
    assert "so a lead must approve it" in shown
    assert "Delete 20 messages\n" not in shown
    form = {"reason": "spam <b>", "manifest_hash": bytes(purge.manifest_hash or b"").hex()}
    refused = first.post(at(purge) + "confirm/", form)
    assert (refused.status_code, "so a lead must approve it" in refused.content.decode()) == (400, True)
    assert first.post(at(purge) + "approval/", form).status_code == 302
    shown = read_page(first, at(purge))
    assert "A lead can approve it until" in shown
    assert "Withdraw request" in shown
    assert "Approve and delete" not in shown
    for url in ("/", "/purges/"):
        assert f"{at(purge)}#approval" in read_page(second, url)
        assert f"{at(purge)}#approval" not in read_page(first, url)
    assert "Approve and delete 20 messages" in read_page(second, at(purge))
    approval = PurgeApproval.objects.get(purge=purge)
    assert second.post(at(purge) + "approval/approve/", {"approval": approval.pk}).status_code == 302
    purge.refresh_from_db()
    assert (purge.state in (PurgeState.QUEUED, PurgeState.RUNNING, PurgeState.DONE), purge.moderator) == (True, mona)
    assert f"Approved by {lena.username}" in read_page(first, at(purge))


def test_a_purge_that_waits_for_ones_approval_has_one_state_in_lists(
    mona: User, lena: User, sign_in: SignIn, purge: Purge
) -> None:
    request(mona, purge)
    for url in ("/", "/purges/"):
        listed = read_page(sign_in(lena), url).split(f'<a class="title" href="{at(purge)}">')[1].split("</li>")[0]
        assert listed.count('class="chip') == 1
        assert ">waiting for your approval<" in listed


def test_a_request_of_ones_own_waits_for_approval_in_lists_as_on_its_page(
    mona: User, sign_in: SignIn, purge: Purge
) -> None:
    request(mona, purge)
    client, chip = sign_in(mona), '<span class="chip warning">waiting for approval</span>'
    for url in ("/", "/purges/"):
        assert chip in read_page(client, url).split(f'<a class="title" href="{at(purge)}">')[1].split("</li>")[0]
    for url in (at(purge), at(purge) + "panel/", at(purge) + "messages/"):
        assert chip in read_page(client, url)


def test_who_may_approve_a_purge_reads_everywhere_that_it_waits_for_them(
    mona: User, lena: User, sign_in: SignIn, purge: Purge
) -> None:
    request(mona, purge)
    client, chip = sign_in(lena), '<span class="chip warning">waiting for your approval</span>'
    for url in ("/", "/purges/", "/purges/?state=awaiting_approval"):
        listed = read_page(client, url).split(f'<a class="title" href="{at(purge)}">')[1:]
        assert {chip in line.split("</li>")[0] for line in listed} == {True}, url
    for url in (at(purge), at(purge) + "panel/", at(purge) + "messages/"):
        shown = read_page(client, url)
        assert chip in shown, url
        assert ">waiting for approval<" not in shown, url


def test_the_plan_of_a_preview_is_conditional_on_the_approval(
    mona: User, lena: User, sign_in: SignIn, purge: Purge
) -> None:
    approval = request(mona, purge)
    for account in (mona, lena):
        page = " ".join(read_page(sign_in(account), at(purge)).split())
        assert "After the approval: all are deleted right away." in page
    sign_in(mona).post(at(purge) + "approval/withdraw/", {"approval": approval.pk})
    assert "After the approval" not in read_page(sign_in(lena), at(purge))


def test_a_rejection_is_shown_with_its_reason(mona: User, lena: User, sign_in: SignIn, purge: Purge) -> None:
    approval = request(mona, purge)
    lead = sign_in(lena)
    empty = lead.post(at(purge) + "approval/reject/", {"approval": approval.pk, "reason": ""})
    assert (empty.status_code, "Enter a reason" in empty.content.decode()) == (400, True)
    lead.post(at(purge) + "approval/reject/", {"approval": approval.pk, "reason": "Keep <i>Victor</i>"})
    answer = sign_in(mona).get(at(purge)).content.decode()
    assert "rejected the last request" in answer
    assert "Keep &lt;i&gt;Victor&lt;/i&gt;" in answer
    assert "Request approval" in answer


def test_the_approver_reads_until_when_they_can_decide_and_has_two_buttons(
    mona: User, lena: User, sign_in: SignIn, purge: Purge
) -> None:
    request(mona, purge)
    page = " ".join(read_page(sign_in(lena), at(purge)).split())
    assert "You can approve or reject it until <time" in page
    assert "A lead can approve it" not in page
    assert "Nothing is deleted without your approval." in page
    assert '<summary class="button">Reject …</summary>' in page
    assert "You can approve" not in read_page(sign_in(mona), at(purge))


def test_only_an_approved_purge_is_enqueued(
    mona: User, lena: User, sign_in: SignIn, purge: Purge, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued: list[int] = []
    monkeypatch.setattr(approving, "enqueue_on_commit", enqueued.append)
    form, client = {"approval": request(mona, purge).pk}, sign_in(lena)
    assert client.post(at(purge) + "approval/approve/", {"approval": purge.pk}).status_code == 400
    assert enqueued == []
    assert client.post(at(purge) + "approval/approve/", form).status_code == 302
    assert enqueued == [purge.pk]


def test_a_preview_with_a_request_has_one_state(mona: User, sign_in: SignIn, purge: Purge) -> None:
    client = sign_in(mona)
    assert "waiting for confirmation" in read_page(client, at(purge))
    request(mona, purge)
    shown = read_page(client, at(purge))
    assert shown.count("waiting for approval") == 1
    assert "waiting for confirmation" not in shown


def test_a_request_is_withdrawn(mona: User, sign_in: SignIn, purge: Purge) -> None:
    approval, client = request(mona, purge), sign_in(mona)
    assert client.post(at(purge) + "approval/withdraw/", {"approval": approval.pk}).status_code == 302
    assert "Request approval" in read_page(client, at(purge))


def test_other_guilds_neither_see_nor_decide(sign_in: SignIn, mona: User, purge: Purge) -> None:
    approval = request(mona, purge)
    elsewhere = sign_in(member("leo", Role.LEAD, make_guild_channel("Quarry")))
    assert elsewhere.get(at(purge)).status_code == 404
    for action in ("approve", "reject"):
        sent = elsewhere.post(f"{at(purge)}approval/{action}/", {"approval": approval.pk, "reason": "x"})
        assert sent.status_code == 404
    assert sign_in(mona).post(at(purge) + "approval/approve/", {"approval": approval.pk}).status_code == 403


def test_a_refusal_per_hour_is_on_the_page(sign_in: SignIn, mona: User, channel: Channel) -> None:
    limit(channel, purges_per_hour=1)
    confirm(mona, preview_some(mona, 2, channel))
    second = preview_some(mona, 3, channel)
    form = {"reason": "spam", "manifest_hash": bytes(second.manifest_hash or b"").hex()}
    refused = sign_in(mona).post(at(second) + "confirm/", form)
    assert refused.status_code == 400
    assert "1 of 1 purge in the last hour in Tidewalkers. You can confirm the next one at" in refused.content.decode()


def test_administrators_of_a_guild_set_its_limits_and_each_change_is_recorded(
    sign_in: SignIn, channel: Channel
) -> None:
    ada, guild_id = member("ada", Role.ADMIN, channel), channel.guild_id
    client = sign_in(ada)
    form = {"server": str(guild_id), "role": "moderator", "messages_without_approval": "2,500", "purges_per_hour": "5"}
    assert "Limits saved." in client.post("/roles/limits/", form, follow=True).content.decode()
    row = PurgeLimits.objects.get(guild=channel.guild)
    assert row.limits.as_json() == {"messages_without_approval": 2500, "purges_per_hour": 5}
    entry = AuditEntry.objects.filter(action="limits_changed", guild_id=guild_id).latest("id")
    assert (entry.actor, entry.details) == (
        ada,
        {
            "role": "moderator",
            "before": {"messages_without_approval": "10"},
            "after": {"messages_without_approval": "2500", "purges_per_hour": "5"},
            "address": "127.0.0.1",
        },
    )
    shown = read_page(client, "/roles/limits/")
    assert "Messages per purge without approval: 2,500" in shown
    assert 'value="2500"' in read_page(client, f"/roles/limits/?edit={row.pk}")
    assert client.post("/roles/limits/", {"server": str(guild_id), "role": "moderator"}).status_code == 302
    assert not PurgeLimits.objects.filter(guild=channel.guild).exists()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"role": "auditor"}, "Only moderators and leads"),
        ({"role": "moderator", "purges_per_hour": "many"}, "is not a whole number"),
        ({"role": "moderator", "purges_per_hour": "0"}, "from 1 to"),
        ({"role": "moderator", "purges_per_hour": "9999999999"}, "from 1 to"),
        ({"role": "moderator", "server": ""}, "servers that you administer"),
        ({"role": "moderator", "server": "No such server"}, "There is no server"),
    ],
)
def test_what_cannot_be_a_limit_is_refused(
    sign_in: SignIn, channel: Channel, form: dict[str, str], message: str
) -> None:
    ada = member("ada", Role.ADMIN, channel)
    answer = sign_in(ada).post("/roles/limits/", {"server": str(channel.guild_id), **form})
    assert (answer.status_code, message in html.unescape(answer.content.decode())) == (400, True)


def test_auditors_see_limits_and_others_do_not(sign_in: SignIn, channel: Channel, mona: User) -> None:
    auditor = sign_in(member("aron", Role.AUDITOR, channel))
    assert "Messages per purge without approval: 10" in read_page(auditor, "/roles/limits/")
    assert "Save limits" not in read_page(auditor, "/roles/limits/")
    assert auditor.post("/roles/limits/", {"role": "moderator"}).status_code == 403
    assert sign_in(mona).get("/roles/limits/").status_code == 403


def test_the_command_requests_approval_above_the_limit(
    mona: User, channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command(
            "purge", "--channel", str(channel.pk), "--author", "71", "--reason", "x", "--yes", "--as", mona.username
        )
    assert ended.value.code == 4
    purge = Purge.objects.filter(moderator=mona).latest("id")
    assert (purge.state, purge.approvals.open().count()) == (PurgeState.READY, 1)
    assert f"Purge {purge.pk} waits for approval until" in capsys.readouterr().err


def test_who_decides_sees_which_of_two_people_of_one_name_asks(
    mona: User, lena: User, channel: Channel, sign_in: SignIn, purge: Purge
) -> None:
    other = member("max", Role.MODERATOR, channel)
    User.objects.filter(pk__in=(mona.pk, other.pk)).update(first_name=f"Mona {purge.pk}", last_name="")
    request(mona, purge)
    name = draw_staff_name(f"Mona {purge.pk} ({mona.username})")
    assert f"{name} requests approval" in read_page(sign_in(lena), at(purge))
