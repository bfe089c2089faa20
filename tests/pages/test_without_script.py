"""Every feature with plain forms and links, as in a browser without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from chatstore.models.users import User
from moderation.models import Purge
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.purging.worker import run_purge
from tests.moderation.channels import by_victor, ids_of
from tests.pages.conftest import PreviewedPurge
from tests.pages.serving import create_account

SignIn = Callable[[User], Client]


def read_fields(html: str, action: str) -> dict[str, str]:
    """Return the hidden fields of the form that posts to a URL."""
    form = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', html, re.DOTALL)
    assert form, action
    return dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form[0]))


def test_signing_in_and_out(previewed: PreviewedPurge) -> None:
    name, password = create_account("mona")
    client = Client(enforce_csrf_checks=True)
    wanted = f"/channels/{previewed.channel.pk}/"
    response = client.get(wanted, follow=True)
    assert response.redirect_chain == [(f"/sign-in/?next={wanted}", 302)]
    token = re.search(r'csrfmiddlewaretoken" value="([^"]*)"', response.content.decode())
    fields = {"username": name, "next": wanted, "csrfmiddlewaretoken": token[1] if token else ""}
    wrong = client.post("/sign-in/", {**fields, "password": "wrong"})
    assert "The user name or the password is wrong." in wrong.content.decode()
    page = client.post("/sign-in/", {**fields, "password": password}, follow=True)
    assert page.redirect_chain == [(wanted, 302)]
    away = read_fields(page.content.decode(), "/sign-out/")
    assert client.post("/sign-out/", away).status_code == 302
    assert client.get(wanted).status_code == 302


def test_a_poll_after_signing_out_reloads_the_page_instead_of_showing_a_form_inside_it(
    previewed: PreviewedPurge,
) -> None:
    live = Client().get(f"/purges/{previewed.purge.pk}/live/", headers={"HX-Request": "true"})
    answer = Client().get(live["Location"], headers={"HX-Request": "true"})
    assert answer.status_code == 204
    assert answer["HX-Trigger"] == "reloadPage"


def test_signing_in_leads_to_no_other_site(previewed: PreviewedPurge) -> None:
    name, password = create_account("mona")
    response = Client().post("/sign-in/", {"username": name, "password": password, "next": "https://evil.example/"})
    assert response["Location"] == "/"


def test_a_page_that_waits_for_its_scan_reloads_itself(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    purge = draft_purge(moderator=mona, selection=by_victor(previewed.channel))
    scanning = sign_in(mona).get(f"/purges/{purge.pk}/").content.decode()
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in scanning
    scan_purge(purge.pk)


def test_selecting_previewing_confirming_and_viewing_the_result(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    client, channel = sign_in(mona), previewed.channel
    page = client.get(f"/channels/{channel.pk}/").content.decode()
    fields = read_fields(page, f"/channels/{channel.pk}/delete/")
    selected = previewed.ids[2:5]
    response = client.post(f"/channels/{channel.pk}/delete/", {**fields, "message_id": [str(i) for i in selected]})
    purge = Purge.objects.get(pk=int(response["Location"].split("/")[2]))

    # Few selected messages are scanned within the request.
    preview = client.get(f"/purges/{purge.pk}/").content.decode()
    assert "Delete 3 messages" in preview
    assert "http-equiv" not in preview
    hidden = read_fields(preview, f"/purges/{purge.pk}/confirm/")
    response = client.post(f"/purges/{purge.pk}/confirm/", {**hidden, "reason": "off topic"})
    assert response["Location"] == f"/purges/{purge.pk}/"
    run_purge(purge.pk)

    done = client.get(f"/purges/{purge.pk}/").content.decode()
    assert "Deleted 3 messages" in done
    assert "“<bdi>off topic</bdi>”" in done
    assert ids_of(channel, purge.steps.get().bucket) == [i for i in previewed.ids if i not in selected]
    assert "3 messages deleted" in client.get(f"/channels/{channel.pk}/").content.decode()


def test_the_totals_on_the_page_add_up(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/"
    client.post(
        f"{path}confirm/", {"manifest_hash": bytes(previewed.purge.manifest_hash or b"").hex(), "reason": "spam"}
    )
    for run in (False, True):
        if run:
            run_purge(previewed.purge.pk)
        html = client.get(path).content.decode()
        shown = r'<td class="num">([\d,]+)</td>' if run else r'<div class="total[^"]*"><b>([\d,]+)</b>'
        totals = (
            html[html.index('aria-label="Totals"') : html.index("Other messages in the channel, ")] if run else html
        )
        parts = [int(n.replace(",", "")) for n in re.findall(shown, totals)]
        assert len(parts) == (2 if run else 3)
        assert sum(parts[:-1]) == parts[-1] == 6
        assert parts[0] == (6 if run else 0)


def test_a_poll_makes_the_page_reload_when_it_changed(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/"
    assert client.get(f"{path}live/")["HX-Trigger"] == "reloadPage"
    client.post(
        f"{path}confirm/", {"manifest_hash": bytes(previewed.purge.manifest_hash or b"").hex(), "reason": "spam"}
    )
    waiting = client.get(f"{path}live/")
    assert "HX-Trigger" not in waiting
    fragment = waiting.content.decode()
    assert 'hx-trigger="every 1s"' in fragment
    # The state beside the heading is outside the swapped part and is sent along.
    state = '<span id="state" hx-swap-oob="true"> <span class="chip busy">queued</span> </span>'
    assert state in " ".join(fragment.split())


def test_a_second_confirmation_has_no_effect(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client, path = sign_in(mona), f"/purges/{previewed.purge.pk}/confirm/"
    fields = {"manifest_hash": bytes(previewed.purge.manifest_hash or b"").hex(), "reason": "spam"}
    assert [client.post(path, fields).status_code for _ in range(2)] == [302, 302]
    assert previewed.purge.audit.filter(action="purge_confirmed").count() == 1


def test_the_list_of_purges_is_paged_and_filtered(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    mine = client.get("/purges/", {"by": previewed.moderator.username}).content.decode()
    assert f"/purges/{previewed.purge.pk}/" in mine
    assert (
        f"/purges/{previewed.purge.pk}/"
        not in client.get("/purges/", {"by": previewed.moderator.username, "state": "done"}).content.decode()
    )
    older = client.get(
        "/purges/", {"by": previewed.moderator.username, "before": str(previewed.purge.pk)}
    ).content.decode()
    assert "No purges match" in older
