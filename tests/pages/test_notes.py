"""Notes on a chat user: newest first, paged by key, with an optional link, deleted by their author only."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connection
from django.db.models import F
from django.test import Client

from chatstore.models import ChatUser
from chatstore.models.users import User
from moderation.domain.sent_twice import SENT_TWICE_WITHIN
from moderation.models import AuditEntry, Note
from moderation.operations.notes import NOTES_PER_PAGE, add_note
from tests.chatstore.channels import fresh_id
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


def make_person() -> int:
    return ChatUser.objects.create(pk=fresh_id(), name="zoe").pk


def texts_at(page: Client, path: str) -> list[str]:
    return re.findall(r'class="note-text" dir="auto"><bdi>([^<]*)<', page.get(path).content.decode())


def test_notes_are_listed_newest_first_and_paged(mona: User, sign_in: SignIn) -> None:
    person, page = make_person(), sign_in(mona)
    written = [f"note {number}" for number in range(NOTES_PER_PAGE + 2)]
    for text in written:
        assert page.post(f"/users/{person}/notes/", {"text": text}).status_code == 302
    path = f"/users/{person}/"
    assert texts_at(page, path) == written[: -NOTES_PER_PAGE - 1 : -1]
    older = re.search(r'href="(\?notes_before=\d+)#notes"', page.get(path).content.decode())
    assert older is not None
    assert texts_at(page, path + older[1]) == ["note 1", "note 0"]


def test_a_note_links_to_its_message_or_purge(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    person, page = make_person(), sign_in(mona)
    message = f"/channels/{previewed.channel.pk}/{previewed.ids[0]}/"
    purge = f"/purges/{previewed.purge.pk}/"
    for link in (message, purge):
        page.post(f"/users/{person}/notes/", {"text": "see there", "link": f"https://chat.example{link}"})
    notes = page.get(f"/users/{person}/").content.decode()
    in_panel = page.get(f"/users/{person}/panel/").content.decode().split('id="panel-notes"')[1].split("</section>")[0]
    for html in (notes, in_panel):
        assert f'href="{message}"' in html
        assert f'href="{purge}"' in html


def test_invalid_notes_are_explained_and_what_was_typed_is_kept(mona: User, sign_in: SignIn) -> None:
    person, page = make_person(), sign_in(mona)
    for typed in ({}, {"text": " "}, {"text": "a\x00"}, {"text": "x" * 2_001}, {"text": "kept", "link": "not a link"}):
        answer = page.post(f"/users/{person}/notes/", typed)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.content.decode()
    assert ">kept</textarea>" in answer.content.decode()
    assert not Note.objects.filter(user_id=person).exists()


def test_only_its_author_deletes_a_note_and_the_audit_log_keeps_it(mona: User, lena: User, sign_in: SignIn) -> None:
    person = make_person()
    sign_in(mona).post(f"/users/{person}/notes/", {"text": "warned"})
    note = Note.objects.get(user_id=person)
    assert "Delete note" not in sign_in(lena).get(f"/users/{person}/").content.decode()
    assert sign_in(lena).post(f"/notes/{note.pk}/delete/").status_code == 403
    assert sign_in(mona).post(f"/notes/{note.pk}/delete/").status_code == 302
    assert not Note.objects.filter(user_id=person).exists()
    entries = AuditEntry.objects.filter(details__note=str(note.pk)).order_by("id")
    assert [(entry.action, entry.details["text"]) for entry in entries] == [
        ("note_added", "warned"),
        ("note_deleted", "warned"),
    ]


def test_a_form_that_is_sent_twice_at_once_adds_one_note(mona: User, lena: User) -> None:
    person, barrier = make_person(), Barrier(2)

    def add(_number: int) -> int:
        try:
            barrier.wait(timeout=60)
            return add_note(person, text="warned", link="", actor=mona).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(add, range(2))
    assert first == second
    assert AuditEntry.objects.filter(action="note_added", chat_user_id=person).count() == 1
    add_note(person, text="warned", link="", actor=lena)
    add_note(person, text="warned again", link="", actor=mona)
    Note.objects.filter(pk=first).update(written_at=F("written_at") - SENT_TWICE_WITHIN)
    add_note(person, text="warned", link="", actor=mona)
    assert Note.objects.filter(user_id=person).count() == 4
