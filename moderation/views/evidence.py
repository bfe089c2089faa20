"""Evidence of a purge as a zip archive, sent while it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_safe

from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel
from moderation.operations.lookup.audit_log import VIEW_AUDIT
from moderation.operations.preview.evidence import Evidence, EvidenceMessage, describe_copy, export_evidence
from moderation.views.audit_exports import COLUMNS as AUDIT_COLUMNS
from moderation.views.audit_exports import as_csv as audit_as_csv
from moderation.views.exports import attach, id_as_text, write_csv
from moderation.views.session import actor_of
from moderation.views.zip_stream import ZipStream

README = """Evidence of purge {purge}
====================={underline}

purge.json     Who deleted what, when and why; the counts; the undos.
plan.jsonl     Each ten-day bucket: the plan as it was previewed, and the steps that carried it out.{manifest}
manifest.csv   Every message that was included, with its outcome.{manifest}
content.jsonl  The saved copies of the messages, one JSON object a line.{content}
content.csv    The same for spreadsheets.
audit.jsonl    The purge's entries in the audit log, newest first, with their place in the hash chain.{archived}
audit.csv      The same for spreadsheets.
SHA256SUMS     Hashes of the files above: sha256sum --check SHA256SUMS

All times are UTC or have an offset; IDs are text. In the .csv files a cell that a spreadsheet could take for a formula
begins with an apostrophe; the .jsonl files have the exact text. Messages that had no copy, and those that their authors
withdrew, are in manifest.csv only.

Manifest hash (in purge.json): for each channel and bucket in ascending order, take the SHA-256 over the pairs of
channel ID and message ID of manifest.csv, ascending, as signed 64-bit big-endian numbers; the manifest hash is the
SHA-256 over these hashes, one after the other. If you may not see some of the channels, their messages are not here.

When the archive had been sent, the audit log recorded its SHA-256 ("Evidence sent"). An archive without SHA256SUMS was
not sent completely.
"""

MANIFEST_COLUMNS: Mapping[str, Any] = {
    "channel_id": lambda one: id_as_text(one.channel.pk),
    "channel": lambda one: one.channel.name,
    "guild": lambda one: None if one.channel.guild is None else one.channel.guild.name,
    "bucket": lambda one: one.bucket,
    "message_id": lambda one: id_as_text(one.message_id),
    "posted_at": lambda one: time_of(one.message_id).isoformat(timespec="milliseconds"),
    "outcome": lambda one: one.outcome,
    "restored": lambda one: "yes" if one.is_undone else "no",
}

_COPY_NAMES = (
    "channel_id message_id author_id posted_at content edited_at type pinned webhook_id author_name attachments embeds "
    "stickers reactions mentions reference flags"
).split()


@require_safe
@permission_required(("moderation.view_purge", VIEW_AUDIT), raise_exception=True)
def purge_evidence(request: HttpRequest, purge_id: int) -> StreamingHttpResponse:
    """Send the evidence of a purge that has ended."""
    evidence = export_evidence(purge_id, actor=actor_of(request))
    return attach(_write(evidence), "application/zip", f"purge-{purge_id}-evidence.zip")


def _write(evidence: Evidence) -> Iterator[bytes]:
    """Yield the archive; record its hash once all of it was taken."""
    archive = ZipStream()
    counts = {"messages": 0, "copies": 0}
    yield from archive.add("README.txt", [_readme(evidence)])
    yield from archive.add("purge.json", [json.dumps(evidence.facts(), indent=2, ensure_ascii=False) + "\n"])
    yield from archive.add("plan.jsonl", _json_lines(evidence.plan()))
    yield from archive.add("manifest.csv", write_csv(MANIFEST_COLUMNS, _counted(evidence.manifest(), counts)))
    copies = (describe_copy(channel, message) for channel, message in _counted_copies(evidence, counts))
    yield from archive.add("content.jsonl", _json_lines(copies))
    columns = {name: _column(name) for name in _COPY_NAMES}
    copies = (describe_copy(channel, message) for channel, message in evidence.content())
    yield from archive.add("content.csv", write_csv(columns, copies))
    entries = ({name: read(listed) for name, read in AUDIT_COLUMNS.items()} for listed in evidence.audit())
    yield from archive.add("audit.jsonl", _json_lines(entries))
    yield from archive.add("audit.csv", audit_as_csv(evidence.audit()))
    sums = [f"{file_hash}  {name}\n" for name, file_hash in archive.hashes.items()]
    yield from archive.add("SHA256SUMS", sums)
    yield from archive.close()
    evidence.record_end(sha256=archive.hexdigest(), counts=counts)


def _readme(evidence: Evidence) -> str:
    purge = str(evidence.purge.pk)
    content = "" if evidence.has_content else "Empty: the copies of this purge were permanently deleted."
    manifest = "" if evidence.has_manifest else "Empty: the manifest of this purge is no longer kept."
    archived = evidence.archived_to
    moved = f"Entries up to position {archived} of the chain are in the archives of the audit log." if archived else ""
    notes = {"content": content, "manifest": manifest, "archived": moved}
    # Each is a line of its own, below the description of its file.
    lines = {name: text and f"\n{' ' * 15}{text}" for name, text in notes.items()}
    return README.format(purge=purge, underline="=" * (len(purge) + 1), **lines)


def _counted(messages: Iterable[EvidenceMessage], counts: dict[str, int]) -> Iterator[EvidenceMessage]:
    for message in messages:
        counts["messages"] += 1
        yield message


def _counted_copies(evidence: Evidence, counts: dict[str, int]) -> Iterator[tuple[Channel, Message]]:
    for copy in evidence.content():
        counts["copies"] += 1
        yield copy


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return (json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)


def _column(name: str) -> Any:
    def read(copy: Mapping[str, Any]) -> Any:
        value = copy[name]
        if isinstance(value, list):
            return json.dumps(value, ensure_ascii=False) if value else None
        return ("yes" if value else "no") if isinstance(value, bool) else value

    return read
