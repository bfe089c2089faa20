"""Import of DiscordChatExporter files: against bare batched inserts of the same rows, and many small ones."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel
from chatstore.operations.importing.discord import ImportChoices, import_discord
from moderation.operations.undo.import_guard import DeletedIds
from tests.bench.channel_pool import ChannelPool
from tests.bench.channels import Filled, empty_channel, insert_channel, new_id, rows_of, settle, spread_ids
from tests.bench.report import Figures
from tests.bench.timing import alternate, seconds_of

SMALL_FILE, MAX_IN_SMALL_FILES = 60, 120_000
"""Messages of a small file, as of a thread, and of all small files: 2,000 of them."""


def measure_import(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield import_vs_insert: messages per second, including parsing and ledger."""
    ids = spread_ids(pool.size)
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder) / "messages"
        write_messages(body, ids)

        def ours() -> float:
            channel = empty_channel()
            path = write_export(Path(folder) / f"{channel.pk}.json", channel, body)
            taken = seconds_of(lambda: import_discord([path], choices=ImportChoices(deleted_ids=DeletedIds)))
            path.unlink()
            pool.imported.append(Filled(channel, ids))
            return taken

        def theirs() -> float:
            filled, taken = insert_channel(pool.size)
            pool.fresh.append(filled)
            return taken

        sides = alternate(ours, theirs, runs=runs, before=settle)
    yield "import_vs_insert", sides.speed
    yield "import_messages_per_second", pool.size / sides.ours


def measure_small_files(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield small_files_vs_large: an import of many small channels, a file each, against one large one."""
    ids = spread_ids(min(pool.size, MAX_IN_SMALL_FILES))
    parts = [ids[start : start + SMALL_FILE] for start in range(0, len(ids), SMALL_FILE)]

    def seconds_of_import(*parts: list[int]) -> float:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for number, part in enumerate(parts):
                write_messages(folder / "messages", part)
                write_export(folder / f"{number}.json", Channel(id=new_id()), folder / "messages")
            (folder / "messages").unlink()
            return seconds_of(lambda: import_discord([folder], choices=ImportChoices(deleted_ids=DeletedIds)))

    sides = alternate(lambda: seconds_of_import(*parts), lambda: seconds_of_import(ids), runs=runs, before=settle)
    yield "small_files_vs_large", sides.speed
    yield "small_files_messages_per_second", len(ids) / sides.ours


def write_export(path: Path, channel: Channel, body: Path) -> Path:
    """Write a DiscordChatExporter file of a channel with the messages in `body`."""
    head = {
        "guild": {"id": "1", "name": "Bench"},
        "channel": {"id": str(channel.pk), "type": "GuildTextChat", "name": "bench"},
    }
    with path.open("w") as file, body.open() as messages:
        file.write(json.dumps(head)[:-1] + ', "messages": [\n')
        shutil.copyfileobj(messages, file)
        file.write("\n]}")
    return path


def write_messages(path: Path, ids: list[int]) -> None:
    """Write the rows of a filled channel in the exporter's format. They name no channel, so every run uses them."""
    with path.open("w") as file:
        for index, row in enumerate(rows_of(0, ids)):
            message = {
                "id": str(row[2]),
                "type": "Default",
                "timestamp": time_of(ids[index]).isoformat(),
                "content": row[5],
                "author": {"id": str(row[3]), "name": f"user{row[3]}", "isBot": False},
            }
            file.write((",\n" if index else "") + json.dumps(message))
