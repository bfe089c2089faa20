"""A channel's pinned messages as they are stored."""

from chatstore.store import cassandra


def pinned_ids(channel_id: int) -> list[int]:
    """Return ids that were pinned, newest message first."""
    rows = cassandra.execute("SELECT message_id FROM pins WHERE channel_id = ?", (channel_id,))
    return [message_id for (message_id,) in rows]
