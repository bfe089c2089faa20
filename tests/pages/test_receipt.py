"""The page of a purge that has ended begins with a receipt."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.test import Client

from chatstore.domain.buckets import bucket_days, bucket_of
from chatstore.domain.texts import format_date_range
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.preview.exclusions import exclude_messages
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.conftest import make_user
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    by_victor,
    confirm,
    make_channel,
    name_authors,
    old_ids,
    preview,
    run_to_end,
    write,
)
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


def receipt_of(client: Client, purge_id: int) -> str:
    """Return the HTML of the receipt."""
    html = client.get(f"/purges/{purge_id}/").content.decode()
    (receipt,) = re.findall(r'<section class="card receipt".*?</section>', html, re.DOTALL)
    return str(receipt)


def squeeze(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def test_the_chart_has_the_same_times(previewed: PreviewedPurge, sign_in: SignIn) -> None:
    client, purge = sign_in(previewed.moderator), previewed.purge
    run_to_end(confirm(previewed.moderator, purge))
    (posted,) = re.findall(r"<dt>Posted</dt>\s*<dd>(.*?)</dd>", receipt_of(client, purge.pk), re.DOTALL)
    html = client.get(f"/purges/{purge.pk}/").content.decode()
    (shown,) = re.findall(r'class="times-title.*?<b>(.*?)</b>', html, re.DOTALL)
    assert squeeze(shown) == squeeze(posted)
    assert " to " in squeeze(posted)


def lines_of(receipt: str) -> dict[str, str]:
    found = re.findall(r'<th scope="row">([^<]*)</th>\s*<td class="num">(.*?)</td>', receipt)
    return {" ".join(label.split()): count for label, count in found}


def test_it_says_who_why_when_where_and_how_long(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    purge = run_to_end(confirm(previewed.moderator, previewed.purge))
    text = squeeze(receipt_of(sign_in(mona), purge.pk))
    assert f"Deleted by {previewed.moderator.get_username()}" in text
    assert "Reason “ a test ”" in text
    assert re.search(r"When \d+ \w+ \d{4}, \d\d:\d\d UTC took ", text)
    assert "Where #room (Harbour)" in text
    assert "Planned cost" not in text
    assert re.search(r"You can restore the deleted messages until ", text)


def test_the_part_that_is_polled_ends_with_the_same_receipt(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    purge, client = run_to_end(confirm(previewed.moderator, previewed.purge)), sign_in(mona)
    html = client.get(f"/purges/{purge.pk}/live/").content.decode()
    (polled,) = re.findall(r'<section class="card receipt".*?</section>', html, re.DOTALL)
    assert lines_of(polled) == lines_of(receipt_of(client, purge.pk))
    assert any("(kept)" in label for label in lines_of(polled))


def test_operators_see_the_planned_cost(previewed: PreviewedPurge, ada: User, sign_in: SignIn) -> None:
    purge = run_to_end(confirm(previewed.moderator, previewed.purge))
    text = squeeze(receipt_of(sign_in(ada), purge.pk))
    assert "Planned cost 6 messages were to be deleted individually, right away. No bucket was to gain" in text


def test_its_lines_add_up_to_what_was_included(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    ids = old_ids(9)
    write(channel, ids[:6])
    write(channel, ids[6:], author=WILMA)
    selection = Selection(channel_ids=(channel.pk,), where=Author((VICTOR, WILMA)))
    purge = preview(mona, selection)
    purge = exclude_messages(purge.pk, ids[:1], moderator=mona, manifest_hash=bytes(purge.manifest_hash or b""))
    confirmed = confirm(mona, purge)
    name_authors()
    place_hold(HoldRequest(author=str(WILMA), channel=str(channel.pk)), reason="case 1", actor=mona)
    receipt = receipt_of(sign_in(mona), run_to_end(confirmed).pk)
    assert lines_of(receipt) == {
        "Deleted": "5",
        "Kept by a hold": "3",
        "Included": "8",
        "Excluded in the preview": "1",
        f"Other messages in the channel, {format_date_range(*bucket_days(bucket_of(ids[0])))} (kept)": "1",
    }


def test_it_says_how_many_were_restored_since(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(5)
    write(channel, ids)
    purge, client = run_to_end(confirm(mona, preview(mona, by_victor(channel)))), sign_in(mona)
    assert not {"restored since", "still deleted"} & lines_of(receipt_of(client, purge.pk)).keys()
    request_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=tuple(ids[:2])), reason="Appeal accepted")
    lines = lines_of(receipt_of(client, run_to_end(purge).pk))
    names = ("Deleted", "restored since", "still deleted", "Included")
    assert [lines[name] for name in names] == ["5", "2", "3", "5"]
    # No notice repeats it.
    assert squeeze(client.get(f"/purges/{purge.pk}/").content.decode()).count("still deleted") == 1


def test_only_those_who_may_read_the_audit_log_get_a_link_to_it(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    purge = run_to_end(confirm(previewed.moderator, previewed.purge))
    ada = make_user("ada", group="admins")
    link = f'href="/audit/?purge={purge.pk}"'
    assert link in receipt_of(sign_in(ada), purge.pk)
    assert (link in receipt_of(sign_in(mona), purge.pk)) == mona.has_perm("moderation.view_auditentry")
    entries = sign_in(ada).get(f"/audit/?purge={purge.pk}").content.decode()
    assert "Purge confirmed" in entries


def test_a_purge_that_has_not_ended_has_none(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(2))
    purge = preview(mona, by_victor(channel))
    for shown in (purge, confirm(mona, purge)):
        assert "card receipt" not in sign_in(mona).get(f"/purges/{shown.pk}/").content.decode()
