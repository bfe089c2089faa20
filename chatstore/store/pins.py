"""A channel's pinned messages, by id. Readers drop ids of messages that are gone."""

from __future__ import annotations

from collections.abc import Iterable

from chatstore.store import cassandra

_INSERT = "INSERT INTO pins (channel_id, message_id) VALUES (?, ?) USING TIMESTAMP ?"
_DELETE = "DELETE FROM pins USING TIMESTAMP ? WHERE channel_id = ? AND message_id = ?"


def note_pin(channel_id: int, message_id: int, *, stamp_us: int, timeout: float | None = None) -> None:
    """Record that a message is pinned."""
    cassandra.execute(_INSERT, (channel_id, message_id, stamp_us), timeout=timeout)


def note_pins(pins: Iterable[tuple[int, int, int]]) -> None:
    """Record many (channel id, message id, stamp in µs) at once."""
    for _ in cassandra.execute_window((_INSERT, pin) for pin in pins):
        pass


def drop_pin(channel_id: int, message_id: int, *, stamp_us: int, timeout: float | None = None) -> None:
    """Record that a message is no longer pinned."""
    cassandra.execute(_DELETE, (stamp_us, channel_id, message_id), timeout=timeout)
