"""Room for a test's small bucket in the lists that the nodes keep of their worst partitions."""

from __future__ import annotations

from django.conf import settings

from chatstore.store import nodes, nodetool
from chatstore.store.top_partitions import TopPartitions, read_all_live, read_known


def make_room() -> None:
    """Empties the lists where they are full: a store that was repaired as a whole lists 200 larger ones."""
    known = [lists for lists in read_known().values() if isinstance(lists, TopPartitions)]
    if any(_is_full(lists) for lists in known):
        hosts = nodes.list_addresses()
        # Cassandra fills its lists at full repairs, and empties them at one of what is repaired only.
        nodetool.run(hosts[0], "repair", "--validate", "--", settings.CASSANDRA["keyspace"], "messages")
        read_all_live(hosts)


def _is_full(lists: TopPartitions) -> bool:
    sizes, tombstones = lists.floor.bytes_listed or 0, lists.floor.tombstones_listed or 0
    # Half: other tests measure as well.
    return len(lists.sizes) * 2 > sizes or len(lists.tombstones) * 2 > tombstones
