"""An import of an exporter's file, against bare batched inserts of the same rows."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from chatstore.domain.snowflakes import time_of
from chatstore.operations.import_discord import ImportChoices, import_discord
from moderation.operations.imports import StandingPurges
from tests.bench import rivals
from tests.bench.channels import empty_channel, rows_of, spread_ids
from tests.bench.rounds import alternate, seconds_of


def measure_import(size: int, *, runs: int) -> dict[str, float]:
    """import_vs_insert: messages per second, the file's parsing and the ledger included."""
    ids = spread_ids(size)
    with tempfile.TemporaryDirectory() as folder:

        def ours() -> float:
            path = write_export(Path(folder), ids)
            taken = seconds_of(lambda: import_discord([path], choices=ImportChoices(standing=StandingPurges())))
            path.unlink()
            return taken

        def theirs() -> float:
            rows = list(rows_of(empty_channel().id, ids))
            return seconds_of(lambda: rivals.run_batches(rivals.INSERT, rows))

        sides = alternate(ours, theirs, runs=runs)
    return {"import_vs_insert": sides.speed, "import_messages_per_second": size / sides.ours}


def write_export(folder: Path, ids: list[int]) -> Path:
    """The same rows as a DiscordChatExporter file of a fresh channel."""
    channel_id = empty_channel().id
    path = folder / f"{channel_id}.json"
    head = {
        "guild": {"id": "1", "name": "Bench"},
        "channel": {"id": str(channel_id), "type": "GuildTextChat", "name": "bench"},
    }
    with path.open("w") as file:
        file.write(json.dumps(head)[:-1] + ', "messages": [\n')
        for index, row in enumerate(rows_of(channel_id, ids)):
            message = {
                "id": str(row[2]),
                "type": "Default",
                "timestamp": time_of(ids[index]).isoformat(),
                "content": row[5],
                "author": {"id": str(row[3]), "name": f"user{row[3]}", "isBot": False},
            }
            file.write((",\n" if index else "") + json.dumps(message))
        file.write("\n]}")
    return path
