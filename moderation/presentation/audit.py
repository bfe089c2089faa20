"""The audit log in words: labels of the actions, and of what their details say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from chatstore.domain.reports import Resolution
from chatstore.domain.texts import from_json
from moderation.domain.state_labels import STATE_LABELS
from moderation.presentation.formats import format_number
from moderation.presentation.reports import RESOLUTION_LABELS
from moderation.presentation.roles import ROLE_LABELS
from moderation.presentation.texts import translate

AUDIT_ACTIONS: dict[str, Promise] = {
    "account_added": pgettext_lazy("action in the audit log", "Account added"),
    "account_invited": pgettext_lazy("action in the audit log", "Account invited"),
    "account_changed": pgettext_lazy("action in the audit log", "Account changed"),
    "approval_closed": pgettext_lazy("action in the audit log", "Request for approval closed"),
    "approval_expired": pgettext_lazy("action in the audit log", "Request for approval expired"),
    "approval_given": pgettext_lazy("action in the audit log", "Purge approved"),
    "approval_rejected": pgettext_lazy("action in the audit log", "Purge rejected"),
    "approval_requested": pgettext_lazy("action in the audit log", "Approval of a purge requested"),
    "approval_withdrawn": pgettext_lazy("action in the audit log", "Request for approval withdrawn"),
    "audit_exported": pgettext_lazy("action in the audit log", "Audit log exported"),
    "authorless_deleted": pgettext_lazy("action in the audit log", "Rows without an author deleted"),
    "channel_added": pgettext_lazy("action in the audit log", "Channel added"),
    "channel_changed": pgettext_lazy("action in the audit log", "Channel changed"),
    "channel_purged": pgettext_lazy("action in the audit log", "Channel purged"),
    "channel_restored": pgettext_lazy("action in the audit log", "Channel restored"),
    "chat_user_added": pgettext_lazy("action in the audit log", "User added"),
    "chat_user_changed": pgettext_lazy("action in the audit log", "User changed"),
    "copies_read": pgettext_lazy("action in the audit log", "Messages of a purge were read"),
    "copy_read": pgettext_lazy("action in the audit log", "A deleted message was read"),
    "entries_archived": pgettext_lazy("action in the audit log", "Entries archived and deleted"),
    "erase_approved": pgettext_lazy("action in the audit log", "Permanent deletion approved"),
    "erase_held": pgettext_lazy("action in the audit log", "Permanent deletion blocked by a hold"),
    "erase_rejected": pgettext_lazy("action in the audit log", "Permanent deletion rejected"),
    "erase_requested": pgettext_lazy("action in the audit log", "Permanent deletion requested"),
    "erase_started": pgettext_lazy("action in the audit log", "Permanent deletion started"),
    "erase_unreadable": pgettext_lazy("action in the audit log", "Permanent deletion: copies unreadable"),
    "erased": pgettext_lazy("action in the audit log", "Permanent deletion completed"),
    "evidence_exported": pgettext_lazy("action in the audit log", "Evidence exported"),
    "evidence_sent": pgettext_lazy("action in the audit log", "Evidence sent"),
    "filter_deleted": pgettext_lazy("action in the audit log", "Filter deleted"),
    "filter_saved": pgettext_lazy("action in the audit log", "Filter saved"),
    "finding_acknowledged": pgettext_lazy("action in the audit log", "Finding acknowledged"),
    "group_added": pgettext_lazy("action in the audit log", "Group added"),
    "group_changed": pgettext_lazy("action in the audit log", "Group changed"),
    "group_deleted": pgettext_lazy("action in the audit log", "Group deleted"),
    "guild_added": pgettext_lazy("action in the audit log", "Server added"),
    "guild_changed": pgettext_lazy("action in the audit log", "Server changed"),
    "hold_lifted": pgettext_lazy("action in the audit log", "Hold lifted"),
    "hold_placed": pgettext_lazy("action in the audit log", "Hold placed"),
    "identity_linked": pgettext_lazy("action in the audit log", "Identity linked"),
    "import_started": pgettext_lazy("action in the audit log", "Import started"),
    "invitation_accepted": pgettext_lazy("action in the audit log", "Invitation accepted"),
    "invitation_failed": pgettext_lazy("action in the audit log", "Invalid invitation opened"),
    "limits_changed": pgettext_lazy("action in the audit log", "Limits changed"),
    "messages_imported": pgettext_lazy("action in the audit log", "Messages imported"),
    "note_added": pgettext_lazy("action in the audit log", "Note added"),
    "note_deleted": pgettext_lazy("action in the audit log", "Note deleted"),
    "passkey_added": pgettext_lazy("action in the audit log", "Passkey added"),
    "passkey_removed": pgettext_lazy("action in the audit log", "Passkey removed"),
    "password_changed": pgettext_lazy("action in the audit log", "Password changed"),
    "password_set": pgettext_lazy("action in the audit log", "Password of an account set"),
    "preview_discarded": pgettext_lazy("action in the audit log", "Preview discarded"),
    "preview_expired": pgettext_lazy("action in the audit log", "Preview expired"),
    "purge_cancel_requested": pgettext_lazy("action in the audit log", "Cancellation requested"),
    "purge_cancelled": pgettext_lazy("action in the audit log", "Purge cancelled"),
    "purge_channel_excluded": pgettext_lazy("action in the audit log", "Channel excluded"),
    "purge_confirmed": pgettext_lazy("action in the audit log", "Purge confirmed"),
    "purge_drafted": pgettext_lazy("action in the audit log", "Purge drafted"),
    "purge_finish_requested": pgettext_lazy("action in the audit log", "Deletion of the rest requested"),
    "purge_finished": pgettext_lazy("action in the audit log", "Purge finished"),
    "purge_messages_excluded": pgettext_lazy("action in the audit log", "Messages excluded"),
    "purge_messages_included": pgettext_lazy("action in the audit log", "Messages included"),
    "purge_paused": pgettext_lazy("action in the audit log", "Purge paused"),
    "purge_resumed": pgettext_lazy("action in the audit log", "Purge resumed"),
    "purge_retry_requested": pgettext_lazy("action in the audit log", "Retry requested"),
    "raid_dismissed": pgettext_lazy("action in the audit log", "Report of a raid dismissed"),
    "raid_settings_added": pgettext_lazy("action in the audit log", "Raid settings added"),
    "raid_settings_changed": pgettext_lazy("action in the audit log", "Raid settings changed"),
    "recovery_code_used": pgettext_lazy("action in the audit log", "Signed in with a recovery code"),
    "recovery_codes_made": pgettext_lazy("action in the audit log", "Recovery codes replaced"),
    "report_claimed": pgettext_lazy("action in the audit log", "Report claimed"),
    "report_released": pgettext_lazy("action in the audit log", "Claim of a report released"),
    "report_resolved": pgettext_lazy("action in the audit log", "Report resolved"),
    "restored_by_import": pgettext_lazy("action in the audit log", "Messages restored by an import"),
    "rewrite_requested": pgettext_lazy("action in the audit log", "Rewrite requested"),
    "role_given": pgettext_lazy("action in the audit log", "Role given"),
    "role_taken": pgettext_lazy("action in the audit log", "Role removed"),
    "run_requested": pgettext_lazy("action in the audit log", "Maintenance run requested"),
    "run_stopped": pgettext_lazy("action in the audit log", "Maintenance run stopped"),
    "schedule_changed": pgettext_lazy("action in the audit log", "Schedule changed"),
    "second_factor_added": pgettext_lazy("action in the audit log", "Second factor added"),
    "second_factor_failed": pgettext_lazy("action in the audit log", "Wrong code of a second factor"),
    "second_factor_removed": pgettext_lazy("action in the audit log", "Second factor removed"),
    "second_factor_reset": pgettext_lazy("action in the audit log", "Second factor of an account reset"),
    "session_ended": pgettext_lazy("action in the audit log", "Session ended"),
    "sessions_ended": pgettext_lazy("action in the audit log", "All other sessions ended"),
    "sign_in_failed": pgettext_lazy("action in the audit log", "Sign-in failed"),
    "signed_in": pgettext_lazy("action in the audit log", "Signed in"),
    "step_failed": pgettext_lazy("action in the audit log", "Step failed"),
    "step_held": pgettext_lazy("action in the audit log", "Step kept by a hold"),
    "undo_expired": pgettext_lazy("action in the audit log", "Undo expired"),
    "undo_finished": pgettext_lazy("action in the audit log", "Undo finished"),
    "undo_requested": pgettext_lazy("action in the audit log", "Undo requested"),
}
"""Labels of the actions. One without a label is shown as it is recorded."""


_VISITORS = frozenset({"invitation_failed", "second_factor_failed", "sign_in_failed"})
"""Actions of visitors who were not signed in. Others without an actor are automatic."""

_FACTS: dict[str, Promise] = {
    "reason": gettext_lazy("Reason"),
    "cause": gettext_lazy("Cause"),
    "text": gettext_lazy("Text"),
    "name": gettext_lazy("Name"),
    "summary": gettext_lazy("Summary"),
    "job": gettext_lazy("Job"),
    "before": gettext_lazy("Before"),
    "after": gettext_lazy("After"),
    "fields": gettext_lazy("Changed"),
    "groups": gettext_lazy("Groups"),
    "filters": gettext_lazy("Filters"),
    "role": gettext_lazy("Role"),
    "account": gettext_lazy("Account"),
    "until": gettext_lazy("Until"),
    "by": gettext_lazy("By"),
    "moderator": gettext_lazy("Moderator"),
    "requested_by": gettext_lazy("Requested by"),
    "approved_by": gettext_lazy("Approved by"),
    "address": gettext_lazy("Address"),
    "was": gettext_lazy("State before"),
    "outcome": gettext_lazy("Outcome"),
    "resolution": gettext_lazy("Resolution"),
    "is_shared": gettext_lazy("Shared"),
    "manifest": gettext_lazy("Messages included"),
    "messages": gettext_lazy("Messages"),
    "requested": gettext_lazy("Requested"),
    "deleted": gettext_lazy("Deleted"),
    "restored": gettext_lazy("Restored"),
    "already_gone": gettext_lazy("Already gone"),
    "already_live": gettext_lazy("Already present"),
    "withdrawn": gettext_lazy("Withdrawn by the author"),
    "still_purged": gettext_lazy("Still purged"),
    "no_copy": gettext_lazy("No copy"),
    "held": gettext_lazy("Held"),
    "failed": gettext_lazy("Failed"),
    "left": gettext_lazy("Left"),
    "channels": gettext_lazy("Channels"),
    "written": gettext_lazy("Written"),
    "updated": gettext_lazy("Updated"),
    "rejected": gettext_lazy("Rejected"),
    "copies": gettext_lazy("Copies"),
    "steps": gettext_lazy("Steps"),
    "ids": gettext_lazy("Messages"),
}
"""Labels of the details that a line of the list shows, in its order, by key."""

_OTHER_FACTS: dict[str, Promise] = {
    "approval": gettext_lazy("Approval"),
    "author": gettext_lazy("User"),
    "bucket": gettext_lazy("Bucket"),
    "file": gettext_lazy("File"),
    "first": gettext_lazy("First position"),
    "hash": gettext_lazy("Hash"),
    "last": gettext_lazy("Last position"),
    "has_content": gettext_lazy("With content"),
    "sha256": gettext_lazy("SHA-256"),
    "finding": gettext_lazy("Finding"),
    "repeated": gettext_lazy("Repeats run"),
    "run": gettext_lazy("Run"),
    "subject": gettext_lazy("Subject"),
    "channel": gettext_lazy("Channel"),
    "erasure": gettext_lazy("Permanent deletion"),
    "grant": gettext_lazy("Given role"),
    "guild": gettext_lazy("Server"),
    "hold": gettext_lazy("Hold"),
    "import": gettext_lazy("Import"),
    "manifest_hash": gettext_lazy("Manifest hash"),
    "message": gettext_lazy("Message"),
    "note": gettext_lazy("Note"),
    "ordinal": gettext_lazy("Step"),
    "of_address": gettext_lazy("Address of the session"),
    "replaced_by": gettext_lazy("Replaced by"),
    "report": gettext_lazy("Report"),
    "selection": gettext_lazy("Selection"),
    "strategy": gettext_lazy("Strategy"),
    "user": gettext_lazy("User"),
}
"""Names of what only the page of an entry shows."""


_WORDS: dict[str, Mapping[str, str | Promise]] = {
    "resolution": {resolution.value: RESOLUTION_LABELS[resolution] for resolution in Resolution},
    "role": {role.value: label for role, label in ROLE_LABELS.items()},
    "was": STATE_LABELS,
}
"""Words for stored values, by the key of the details."""


def label_of(action: str) -> str:
    """Return the words for an action; one without is shown as it is recorded."""
    return str(AUDIT_ACTIONS.get(action) or action.replace("_", " ").capitalize())


def is_by_visitor(action: str) -> bool:
    """Return whether a visitor who was not signed in acted: nothing else records the action without an actor."""
    return action in _VISITORS


def facts_in_short(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the label and the value of what a line shows. Counts of 0 are left out."""
    return [
        (str(label), _format(key, details[key]))
        for key, label in _FACTS.items()
        if details.get(key) not in (None, 0, "", False, [])
    ]


_SUBJECTS = ("role", "account", "job", "name")
"""Details that name what an entry without a purge and a user is about."""


def facts_in_line(details: Mapping[str, Any]) -> str:
    """Return what an entry is about: "Moderator · nora"; "" if its details do not name it."""
    return " · ".join(_format(key, details[key]) for key in _SUBJECTS if details.get(key))


def outcome_of(details: Mapping[str, Any]) -> str:
    """Return how a report was resolved: "message deleted"; "" for another entry."""
    return _format("resolution", details["resolution"]) if details.get("resolution") else ""


def all_facts(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the label and the value of everything that an entry recorded."""
    names = _FACTS | _OTHER_FACTS
    return [
        (str(names.get(key) or key.replace("_", " ").capitalize()), _format(key, value))
        for key, value in details.items()
    ]


def _format(key: str, value: Any) -> str:
    words = _WORDS.get(key, {})
    return translate(str(words[value])) if isinstance(value, str) and value in words else format_fact(value)


def format_fact(value: Any) -> str:
    """Return a value of the details as text."""
    match value:
        case bool():
            return _("yes") if value else _("no")
        case int():
            return format_number(value)
        case None:
            return "–"
        case str():
            return translate(value)
        case list() if all(isinstance(part, str) for part in value):
            return ", ".join(value) or "–"
        case {"template": _template, **_others}:
            return translate(from_json(value))
        case dict() if all(isinstance(part, str | bool | list) for part in value.values()):
            return " · ".join(f"{name.replace('_', ' ')} {format_fact(part)}" for name, part in value.items()) or "–"
        case _:
            return json.dumps(value, ensure_ascii=False, sort_keys=True)
