"""The public face of Chatstore for other programs, such as a chat's gateway.

Import from here and from nowhere else: everything below this module may change between releases. Call
`django.setup()` with `DJANGO_SETTINGS_MODULE=chatstore.settings` first. All functions may be called from any thread;
errors are subclasses of `ChatstoreError`, whose class determines whether to retry (`StoreUnavailable`) or not.
"""

from chatstore.domain.errors import (
    BadInput,
    ChatstoreError,
    Forbidden,
    NotFound,
    StoreUnavailable,
    WriteRefused,
)
from chatstore.domain.members import Member, MemberRole
from chatstore.domain.messages import Message, Page
from chatstore.domain.reports import ReportCategory
from chatstore.operations.coordination.snowflake_ids import new_message_id
from chatstore.operations.gateway.members import save_guild_icon, save_member, save_members
from chatstore.operations.gateway.messages import (
    PostColumns,
    edit_message,
    pin_message,
    post_message,
    unpin_message,
    withdraw_message,
)
from chatstore.operations.gateway.reports import report_message
from chatstore.store.reading.reader import read_around, read_page

__all__ = [
    "BadInput",
    "ChatstoreError",
    "Forbidden",
    "Member",
    "MemberRole",
    "Message",
    "NotFound",
    "Page",
    "PostColumns",
    "ReportCategory",
    "StoreUnavailable",
    "WriteRefused",
    "edit_message",
    "new_message_id",
    "pin_message",
    "post_message",
    "read_around",
    "read_page",
    "report_message",
    "save_guild_icon",
    "save_member",
    "save_members",
    "unpin_message",
    "withdraw_message",
]
