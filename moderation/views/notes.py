"""Notes about a chat user: the forms that add one and delete one's own."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from chatstore.domain.errors import BadInput
from moderation.operations.lookup.chat_users import profile_of
from moderation.operations.notes import ADD_NOTE, add_note, delete_note
from moderation.views.chat_user import show_user
from moderation.views.session import actor_of


@require_POST
@permission_required(ADD_NOTE, raise_exception=True)
def user_notes(request: HttpRequest, user_id: int) -> HttpResponse:
    """Add a note about a chat user."""
    # 404 for an id that is unknown everywhere.
    profile_of(request.user, user_id)
    typed = request.POST
    try:
        add_note(user_id, text=typed.get("text", ""), link=typed.get("link", ""), actor=actor_of(request))
    except BadInput as error:
        return show_user(request, user_id, error_message=error.text)
    return redirect(f"{reverse('user', args=[user_id])}#notes")


@require_POST
@permission_required(ADD_NOTE, raise_exception=True)
def note_delete(request: HttpRequest, note_id: int) -> HttpResponse:
    """Delete one's own note."""
    note = delete_note(note_id, actor=actor_of(request))
    return redirect(f"{reverse('user', args=[note.user_id])}#notes")
