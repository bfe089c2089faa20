"""Space for a test's small bucket in the nodes' lists of their largest partitions."""

from __future__ import annotations

from django.conf import settings

from chatstore.store import nodes, nodetool
from chatstore.store.top_partitions import TopPartitions, read_all_live, read_latest


def make_room_in_lists() -> None:
    """Empty the lists if they are full: after a repair of the whole store they contain 200 larger partitions."""
    known = [lists for lists in read_latest().values() if isinstance(lists, TopPartitions)]
    if any(_is_full(lists) for lists in known):
        hosts = nodes.list_addresses()
        # Cassandra fills these lists at full repairs and empties them at a repair with `--validate`.
        nodetool.run(hosts[0], "repair", "--validate", "--", settings.CASSANDRA["keyspace"], "messages")
        read_all_live(hosts)


def _is_full(lists: TopPartitions) -> bool:
    sizes, tombstones = lists.floor.bytes_listed or 0, lists.floor.tombstones_listed or 0
    # Half full counts as full, because other tests measure too.
    return len(lists.sizes) * 2 > sizes or len(lists.tombstones) * 2 > tombstones
