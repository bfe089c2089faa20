"""Reports that members make in the chat: the API for a chat's gateway."""

from __future__ import annotations

from chatstore.domain.errors import NotFound
from chatstore.domain.message_limits import check_id
from chatstore.domain.reports import check_category, check_report_text
from chatstore.models import Channel
from chatstore.operations.gateway.messages import check_key, translate_errors
from chatstore.operations.reports import record_report
from chatstore.store import messages


@translate_errors
def report_message(
    channel_id: int, message_id: int, *, actor: int, category: str, text: str = "", author_id: int | None = None
) -> bool:
    """Report a message to the moderators, as a member of the chat; return whether the report is new.

    Idempotent: a member has one open report of a message, and reporting it again changes nothing until a moderator
    has resolved it. The message need not exist any more; `author_id` is then used to name its author.

    Raises `BadInput` for values that cannot be stored, `NotFound` if the channel is not registered, since no moderator
    could open it, and `StoreUnavailable` (report it again).
    """
    check_key(channel_id, message_id, actor=actor)
    checked = check_category(category), check_report_text(text)
    if author_id is not None:
        check_id(author_id, what="author id")
    if not Channel.objects.filter(pk=channel_id).exists():
        raise NotFound(f"channel {channel_id} is not registered")
    message = messages.read_message(channel_id, message_id)
    return record_report(
        channel_id,
        message_id,
        reporter_id=actor,
        category=checked[0],
        text=checked[1],
        author_id=message.author_id if message else author_id,
    )
