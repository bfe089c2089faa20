"""Evidence of one purge that has ended: what it selected, what it deleted, and who did what.

Reading it is reading removed content, so it needs the right to read the audit log too, and is recorded before anything
of it is sent. It is read while it is sent: whatever its size, only a part is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from chatstore.domain.errors import BadInput, StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.selection import Selection
from moderation.domain.states import WITHOUT_COPIES
from moderation.models import Purge
from moderation.operations.access.audit import record_action
from moderation.operations.access.audit_chain import archived_end
from moderation.operations.access.visibility import Actor, name_of, purge_for, require, visible_channels
from moderation.operations.lookup.audit_log import VIEW_AUDIT, AuditQuery, ListedEntry, iterate_entries
from moderation.operations.preview.manifest import frozen_ids_of, read_copies
from moderation.operations.preview.purge_summary import FINAL_PURGES
from moderation.operations.selection.scope import visible_part
from moderation.operations.selection.summary import describe_purges
from moderation.operations.steps.totals import totals_of

COPIES_AT_ONCE = 500
"""Messages in memory at a time. A chunk of the quarantine has at most 1,000 and 1 MiB of JSON."""


@dataclass(frozen=True, slots=True)
class EvidenceMessage:
    """Message of the manifest. outcome, is_undone: as its step recorded them."""

    channel: Channel
    bucket: int
    message_id: int
    outcome: str
    is_undone: bool


def may_export_evidence(user: Actor, purge: Purge) -> bool:
    """Return whether this user may export evidence of this purge now."""
    return purge.confirmed_at is not None and purge.state in FINAL_PURGES and user.has_perm(VIEW_AUDIT)


class Evidence:
    """Contents of the export. Each method sends its own queries, while its result is consumed."""

    def __init__(self, purge: Purge, actor: User) -> None:
        self.purge, self._actor = purge, actor
        self.has_content = purge.state not in WITHOUT_COPIES
        self.has_manifest = purge.manifest == 0 or purge.manifest_buckets.exists()
        archived = archived_end()
        self.archived_to = archived.position if archived else None

    def facts(self) -> dict[str, Any]:
        """Return who deleted what, when and why, and the counts. IDs are strings."""
        purge = self.purge
        return {
            "purge": str(purge.pk),
            "state": purge.state,
            "moderator": purge.moderator.get_username(),
            "moderator_name": name_of(purge.moderator),
            "reason": str(purge.reason),
            "summary": str(describe_purges(self._actor, [purge])[0].summary),
            "selection": visible_part(Selection.from_json(purge.selection), self._actor).as_json(),
            **{
                name: getattr(purge, name).isoformat() if getattr(purge, name) else None
                for name in ("created_at", "ready_at", "confirmed_at", "started_at", "finished_at")
            },
            "manifest_hash": bytes(purge.manifest_hash).hex() if purge.manifest_hash else None,
            "totals": totals_of(purge).as_json(),
            "held_at_scan": purge.held_at_scan,
            "undos": list(self._undos()),
            "has_content": self.has_content,
            "has_manifest": self.has_manifest,
            "audit_archived_to": self.archived_to,
        }

    def plan(self) -> Iterator[dict[str, Any]]:
        """Yield the plan of each bucket as it was previewed, with the steps that carried it out."""
        steps = self.purge.steps.order_by("channel_id", "bucket", "ordinal")
        names = ("ordinal", "kind", "state", "strategy", "count", "deleted", "already_gone", "held", "failed")
        done = steps.values("channel_id", "bucket", *names, "delete_stamp", "counted_at").iterator(chunk_size=500)
        following = next(done, None)
        checked: tuple[int, bool] | None = None
        for planned in self.purge.manifest_buckets.order_by("channel_id", "bucket").iterator(chunk_size=500):
            here = []
            while following is not None and (following["channel_id"], following["bucket"]) <= (
                planned.channel_id,
                planned.bucket,
            ):
                here.append(following)
                following = next(done, None)
            if checked is None or checked[0] != planned.channel_id:
                checked = planned.channel_id, visible_channels(self._actor).filter(pk=planned.channel_id).exists()
            if not checked[1]:
                continue
            yield {
                "channel_id": str(planned.channel_id),
                "bucket": planned.bucket,
                "count": planned.count,
                "survivors": planned.survivors,
                "manifest_hash": bytes(planned.manifest_hash).hex() if planned.manifest_hash else None,
                "plan": planned.plan,
                "steps": [_describe_step(step, names) for step in here],
            }

    def manifest(self) -> Iterator[EvidenceMessage]:
        """Yield every message, by channel and id."""
        for channel, bucket, frozen in frozen_ids_of(self._actor, self.purge):
            for one in frozen:
                yield EvidenceMessage(channel, bucket, one.message_id, one.outcome.value, one.is_undone)

    def content(self) -> Iterator[tuple[Channel, Message]]:
        """Yield the saved copies, without those that their authors withdrew. Raises `StoreUnavailable`.

        Also if the copies are erased meanwhile: an export that lacks some must not look complete.
        """
        for channel, bucket, frozen in frozen_ids_of(self._actor, self.purge):
            while ids := [one.message_id for one in islice(frozen, COPIES_AT_ONCE)]:
                copies = read_copies(self.purge, channel.pk, bucket, ids)
                yield from ((channel, copies[i]) for i in ids if i in copies)
        if self.has_content and Purge.objects.filter(pk=self.purge.pk, state__in=WITHOUT_COPIES).exists():
            raise StoreUnavailable(_("the copies of this purge were permanently deleted meanwhile"))

    def audit(self) -> Iterator[ListedEntry]:
        """Yield the entries of the purge in the audit log, newest first."""
        return iterate_entries(self._actor, AuditQuery(purge_id=self.purge.pk))

    def record_end(self, *, sha256: str, counts: Mapping[str, int]) -> None:
        """Record the hash of the archive once all of it was sent: the audit log then proves which one it was."""
        details = {"sha256": sha256, **counts}
        record_action("evidence_sent", actor=self._actor, purge=self.purge, details=details)

    def _undos(self) -> Iterator[dict[str, Any]]:
        counts = ("requested", "restored", "withdrawn", "still_purged", "already_live", "no_copy", "failed")
        for undo in self.purge.undos.select_related("moderator").order_by("pk"):
            yield {
                "undo": str(undo.pk),
                "moderator": undo.moderator.get_username(),
                "requested_at": undo.requested_at.isoformat(),
                "reason": undo.reason,
                "part": undo.part,
                **{name: getattr(undo, name) for name in counts},
            }


def export_evidence(purge_id: int, *, actor: User) -> Evidence:
    """Record that evidence is exported, and return its contents.

    Raises `Forbidden`, `NotFound`; `BadInput` for a purge that has not ended.
    """
    require(actor, VIEW_AUDIT)
    purge = purge_for(actor, purge_id, VIEW_AUDIT)
    if not may_export_evidence(actor, purge):
        raise BadInput(_("Evidence can be exported once the purge has ended."))
    evidence = Evidence(purge, actor)
    record_action("evidence_exported", actor=actor, purge=purge, details={"has_content": evidence.has_content})
    return evidence


def describe_copy(channel: Channel, message: Message) -> dict[str, Any]:
    """Return every column of a copy. IDs are strings."""
    columns = asdict(message)
    reference = message.reference
    return {
        **columns,
        "channel_id": str(channel.pk),
        "message_id": str(message.message_id),
        "author_id": str(message.author_id),
        "edited_at": message.edited_at.isoformat() if message.edited_at else None,
        "webhook_id": None if message.webhook_id is None else str(message.webhook_id),
        "attachments": list(message.attachments),
        "embeds": list(message.embeds),
        "stickers": list(message.stickers),
        "reactions": dict(message.reactions),
        "mentions": [str(user) for user in message.mentions],
        "reference": None if reference is None else [None if part is None else str(part) for part in reference],
        "posted_at": message.posted_at.isoformat(),
    }


def _describe_step(step: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    stamp, counted_at = step["delete_stamp"], step["counted_at"]
    return {
        **{name: step[name] for name in names},
        # Microseconds, more digits than a number of JavaScript has.
        "write_timestamp": None if stamp is None else str(stamp),
        "counted_at": None if counted_at is None else counted_at.isoformat(),
    }
