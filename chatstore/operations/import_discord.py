"""Import of DiscordChatExporter files, by channel: the files of one channel are one import.

What is never done: more held in memory than a load of messages; a channel written that
another job holds; a message brought back that was withdrawn, or removed by a purge that
stands (unless it is asked to). A run that died is simply repeated: what is there already is
left as it is, and once its lease has lapsed the channel is free again.
"""

from __future__ import annotations

import gc
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from chatstore.domain.discord_export import ExportHeader, ExportRejected
from chatstore.domain.errors import BadInput
from chatstore.operations.channel_lease import ChannelLost
from chatstore.operations.clock import check_clock
from chatstore.operations.export_files import ExportFile, ImportProblem, find_exports, read_header
from chatstore.operations.import_channel import ChannelImport
from chatstore.operations.import_run import ImportChoices, ImportProgress, ImportRun, ImportSummary, group_problems
from chatstore.operations.import_settling import wait_for_pages

__all__ = [
    "ImportChoices",
    "ImportProblem",
    "ImportProgress",
    "ImportSummary",
    "group_problems",
    "import_discord",
]

log = logging.getLogger(__name__)


def import_discord(
    paths: Sequence[Path],
    *,
    choices: ImportChoices,
    tell: Callable[[ImportProgress], None] | None = None,
) -> ImportSummary:
    """Import files, folders and archives; what goes wrong is named in the summary, the rest goes on.

    Raises `BadInput` when an id is given for a file that is not among them, `WriteRefused` when this
    process's clock is off, `StoreUnavailable` when the store stays away; what was written by then
    stays, and the same import again completes it.
    """
    with collect_seldom():
        return _import_all(ImportRun(choices, tell), paths)


@contextmanager
def collect_seldom() -> Iterator[None]:
    """Let Python look for cycles a hundred times less often: what the parser makes has none.

    The looking took a tenth of an import's time.
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
    for headers in _group_by_channel(run, files).values():
        summary.channels += 1
        try:
            ChannelImport(run, headers).run()
        except ChannelLost as lost:
            for file, _ in headers:
                run.fail(file, str(lost))
    summary.seconds = run.seconds()
    wait_for_pages(run.last_clear)
    log.info("%s: %d messages, %d written", run.job, summary.messages, summary.written)
    return summary


def _group_by_channel(run: ImportRun, files: Sequence[ExportFile]) -> dict[int, list[tuple[ExportFile, ExportHeader]]]:
    """The files that are exports, by their channel; the others are named in the summary."""
    grouped: dict[int, list[tuple[ExportFile, ExportHeader]]] = defaultdict(list)
    given = _find_given(run.choices.channel_ids, files)
    for file in files:
        try:
            header = read_header(file, given_id=given.get(file), derives_id=run.choices.derives_ids)
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
    """The file that each name means: in full, or the last part of it."""
    given: dict[ExportFile, int] = {}
    for name, channel_id in channel_ids.items():
        meant = [file for file in files if file.name in {name, str(Path(name))}] or [
            file for file in files if name in {Path(file.member or file.path).name, file.member}
        ]
        if len(meant) != 1:
            raise BadInput(f"{name} is given an id, and is {'not one' if meant else 'none'} of the files.")
        given[meant[0]] = channel_id
    return given
