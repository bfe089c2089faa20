"""The note of the demonstration, about the author of its spam."""

from __future__ import annotations

from chatstore.models import ChatUser
from chatstore.models.users import User
from moderation.models import Note
from moderation.operations.notes import add_note

AUTHOR = "lena"
SUBJECT = "victor.deals"
TEXT = "Posts the same links on all three servers. Warned in a direct message, no answer."


def write_demo_note() -> None:
    """Add the note, if the demo accounts exist and there is none yet. Idempotent."""
    author, subject = User.objects.filter(username=AUTHOR).first(), ChatUser.objects.filter(name=SUBJECT).first()
    if author is not None and subject is not None and not Note.objects.filter(user_id=subject.pk).exists():
        add_note(subject.pk, text=TEXT, link="", actor=author)
