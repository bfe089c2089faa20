"""Import of DiscordChatExporter files. The files of a channel form one import; small channels are grouped.

Invariants: never more than two loads of messages are in memory; a channel that another job has locked is not
written; a message that was withdrawn, or deleted by a purge that has not been undone, is not restored (unless
requested). A run that died is simply repeated: existing messages are left as they are, and its channels can be
locked again once its lease has expired.
"""

from __future__ import annotations

import gc
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from chatstore.domain.discord_export import ExportHeader, ExportRejected
from chatstore.domain.errors import BadInput
from chatstore.operations.coordination.channel_lease import ChannelLost
from chatstore.operations.coordination.channel_lock import lock_owner
from chatstore.operations.coordination.clock import check_clock
from chatstore.operations.importing.channels import ChannelFiles, Channels, ChannelsImport
from chatstore.operations.importing.completion import wait_for_pages
from chatstore.operations.importing.export_files import ExportFile, ImportProblem, find_exports, read_header
from chatstore.operations.importing.run import (
    ImportChoices,
    ImportProgress,
    ImportRun,
    ImportSummary,
    ProblemKind,
    group_problems,
)

__all__ = [
    "ImportChoices",
    "ImportProblem",
    "ImportProgress",
    "ImportSummary",
    "ProblemKind",
    "group_problems",
    "import_discord",
]

MAX_GROUP_BYTES = 16 * 1024 * 1024
MAX_GROUP_CHANNELS = 500
"""A group of channels that are locked and imported together ends at whichever limit is reached first; about
three loads.
"""

log = logging.getLogger(__name__)


def import_discord(
    paths: Sequence[Path],
    *,
    choices: ImportChoices,
    on_progress: Callable[[ImportProgress], None] | None = None,
) -> ImportSummary:
    """Import files, folders and archives. Problems are listed in the summary, and the rest is imported.

    Raises `BadInput` if an id is given for a file that is not among them, `WriteRefused` if this process's clock is
    off, `StoreUnavailable` if the store stays unavailable; what was written by then is kept, and repeating the
    import completes it.
    """
    run = ImportRun(choices, on_progress)
    with reduced_garbage_collection(), closing(run.archives):
        return _import_all(run, paths)


@contextmanager
def reduced_garbage_collection() -> Iterator[None]:
    """Run Python's cycle collector a hundred times less often, because the parser creates no cycles.

    Collections took a tenth of an import's time.
    """
    before = gc.get_threshold()
    gc.set_threshold(before[0] * 100, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _import_all(run: ImportRun, paths: Sequence[Path]) -> ImportSummary:
    check_clock()
    files, failed = find_exports(paths)
    summary = run.summary
    summary.files = len(files)
    for problem in failed:
        run.add_failed(problem)
    channels = _group_by_channel(run, files)
    summary.channels = len(channels)
    busy = _import_unlocked(run, channels)
    # A lease may belong to a killed import, so wait for it, but no longer than it can last.
    until = time.monotonic() + run.choices.lease_seconds + 5
    while busy and time.monotonic() < until:
        time.sleep(0.25)
        busy = _import_unlocked(run, busy)
    for channel_id, found in busy.items():
        _fail_busy(run, found, f"its channel {channel_id} is locked by {lock_owner(channel_id) or 'another job'}")
    summary.seconds = run.seconds()
    wait_for_pages(run.last_clear)
    log.info("%s: %d messages, %d written", run.job, summary.messages, summary.written)
    return summary


def _import_unlocked(run: ImportRun, channels: Channels) -> Channels:
    """Import channels, small ones in groups; return those that other jobs have locked."""
    busy: dict[int, ChannelFiles] = {}
    for together in _pack(channels):
        taken = ChannelsImport(run, together)
        try:
            taken.run()
        except ChannelLost as lost:
            for files in taken.channels.values():
                _fail_busy(run, files, str(lost))
        busy.update((channel_id, files) for channel_id, files in together.items() if channel_id not in taken.channels)
    return busy


def _fail_busy(run: ImportRun, files: ChannelFiles, reason: str) -> None:
    for file, _ in files:
        run.fail(file, reason, kind="its channel is locked by another job")


def _pack(channels: Channels) -> Iterator[Channels]:
    """Yield groups of channels to import: small ones up to a few loads, a large one alone."""
    together: dict[int, ChannelFiles] = {}
    size = 0
    for channel_id, files in channels.items():
        bytes_here = sum(file.size for file, _ in files)
        if together and (size + bytes_here > MAX_GROUP_BYTES or len(together) == MAX_GROUP_CHANNELS):
            yield together
            together, size = {}, 0
        together[channel_id] = files
        size += bytes_here
    if together:
        yield together


def _group_by_channel(run: ImportRun, files: Sequence[ExportFile]) -> dict[int, list[tuple[ExportFile, ExportHeader]]]:
    """Return the files that are exports, by channel; the others are listed in the summary."""
    grouped: dict[int, list[tuple[ExportFile, ExportHeader]]] = defaultdict(list)
    given = _find_given(run.choices.channel_ids, files)
    for file in files:
        try:
            header = read_header(
                file, given_id=given.get(file), derives_id=run.choices.derives_ids, archives=run.archives
            )
        except ExportRejected as rejected:
            run.fail(file, str(rejected), kind=rejected.kind)
        except Exception as error:
            log.exception("%s", file.name)
            run.crash(file, 0, error)
        else:
            run.bytes_total += file.size
            grouped[header.channel_id].append((file, header))
    return grouped


def _find_given(channel_ids: Mapping[str, int], files: Sequence[ExportFile]) -> dict[ExportFile, int]:
    """Return the file that each name refers to: by full name, or by its last part."""
    given: dict[ExportFile, int] = {}
    for name, channel_id in channel_ids.items():
        meant = [file for file in files if file.name in {name, str(Path(name))}] or [
            file for file in files if name in {Path(file.member or file.path).name, file.member}
        ]
        if len(meant) != 1:
            raise BadInput(f"An id is given for {name}, which matches {'several' if meant else 'none'} of the files.")
        given[meant[0]] = channel_id
    return given
