"""State of Cassandra's nodes, as each reports it: up or down, data size, pending compactions.

All nodes are queried in parallel for their local tables. A node that does not respond is named; an unknown value is
None, never 0. We do not connect to nodes of another datacenter: of those only gossip and what the driver has learned
since this process started are known.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings

from chatstore.domain.errors import NodeUnreachable, StoreUnavailable
from chatstore.domain.texts import gettext_lazy as _
from chatstore.store import cassandra
from chatstore.store.cassandra import Params, Pending, Row
from chatstore.store.driver_errors import DeadlinePassed

Answers = Mapping[str, list[Row] | NodeUnreachable]
"""Each node's rows by its address, or the error."""

_RELEASE = "SELECT release_version FROM system.local"
_COMPACTIONS = "SELECT pending_tasks, active_tasks FROM system_views.thread_pools WHERE name = 'CompactionExecutor'"
_GOSSIP = "SELECT address, load, status_with_port FROM system_views.gossip_info"

_STOPPED = "shutdown"

MAX_RETRIES = 4
RETRY_DELAY_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster.

    is_up: as in `list_states`; None if unknown. error: why it did not respond; empty if it did. is_remote: it is in
    another datacenter and was not queried. gossip: its status by gossip ("normal", "leaving", "shutdown" …);
    load_bytes: its data on disk, also by gossip. compactions_waiting, compactions_running: tasks.
    """

    address: str
    datacenter: str
    is_up: bool | None
    requested_at: dt.datetime
    is_remote: bool = False
    error: str = ""
    release: str | None = None
    gossip: str | None = None
    load_bytes: int | None = None
    compactions_waiting: int | None = None
    compactions_running: int | None = None


def read_nodes() -> list[Node]:
    """Return every node of the cluster, by address. Raises `StoreUnavailable` if none responds."""
    releases, compactions, gossip = query_nodes(_RELEASE), query_nodes(_COMPACTIONS), _read_gossip()
    now = dt.datetime.now(dt.UTC)
    found = []
    for address, is_up, datacenter in cassandra.hosts():
        release, tasks = releases.get(address), compactions.get(address)
        waiting, running = _first(tasks, width=2)
        status, load = gossip.get(address, (None, None))
        is_remote = _is_remote(datacenter)
        found.append(
            Node(
                address=address,
                datacenter=datacenter,
                is_up=resolve_state(is_up, gossip=status),
                requested_at=now,
                is_remote=is_remote,
                error=release.text if isinstance(release, NodeUnreachable) and not is_remote else "",
                release=_first(release, width=1)[0],
                gossip=status,
                load_bytes=load,
                compactions_waiting=waiting,
                compactions_running=running,
            )
        )
    return found


def query_nodes(cql: str, params: Params = (), *, hosts: Iterable[str] | None = None) -> Answers:
    """Query some nodes, or all of them, in parallel for their local tables."""
    far = {address: datacenter for address, _, datacenter in cassandra.hosts() if _is_remote(datacenter)}
    wanted = list(list_addresses() if hosts is None else hosts)
    answers = _query([host for host in wanted if host not in far], cql, params)
    for _attempt in range(MAX_RETRIES):
        refused = [host for host, answer in answers.items() if _was_not_sent(answer)]
        again = sorted(set(refused) - set(list_down()))
        if not again:
            break
        # A new session has not opened all its connections yet.
        time.sleep(RETRY_DELAY_SECONDS)
        answers |= _query(again, cql, params)
    results: dict[str, list[Row] | NodeUnreachable] = {
        host: NodeUnreachable(_("Node %(node)s does not answer.", node=host))
        if isinstance(answer, StoreUnavailable)
        else answer
        for host, answer in answers.items()
    }
    for host in far.keys() & set(wanted):
        results[host] = NodeUnreachable(
            _(
                "Node %(node)s is in datacenter %(datacenter)s. This server does not connect to it.",
                node=host,
                datacenter=far[host],
            )
        )
    return results


def _query(hosts: Iterable[str], cql: str, params: Params) -> dict[str, list[Row] | StoreUnavailable]:
    pending_by_host: dict[str, Pending | StoreUnavailable] = {}
    for host in hosts:
        try:
            pending_by_host[host] = cassandra.submit_to(host, cql, params)
        except StoreUnavailable as error:
            pending_by_host[host] = error
    return {host: _wait_for(pending) for host, pending in pending_by_host.items()}


def _wait_for(pending: Pending | StoreUnavailable) -> list[Row] | StoreUnavailable:
    if isinstance(pending, StoreUnavailable):
        return pending
    try:
        return pending.rows()
    except StoreUnavailable as error:
        return error


def _was_not_sent(answer: list[Row] | StoreUnavailable) -> bool:
    """Return whether the query was never sent; one that timed out is not retried."""
    return isinstance(answer, StoreUnavailable) and not isinstance(answer, DeadlinePassed)


def list_addresses() -> list[str]:
    """Return every node known to the driver, up or down."""
    return [address for address, *_ in cassandra.hosts()]


def list_down() -> list[str]:
    """Return the addresses of the nodes known to be down."""
    return [address for address, is_up, _ in list_states() if is_up is False]


def list_states() -> list[tuple[str, bool | None, str]]:
    """Return every node by address: whether it is up (None if unknown), its datacenter. Raises `StoreUnavailable`."""
    hosts = cassandra.hosts()
    if all(is_up is not None for _, is_up, _ in hosts):
        return hosts
    try:
        gossip = _read_gossip()
    except StoreUnavailable:
        gossip = {}
    return [
        (address, resolve_state(is_up, gossip=gossip.get(address, (None, None))[0]), datacenter)
        for address, is_up, datacenter in hosts
    ]


def resolve_state(seen: bool | None, *, gossip: str | None) -> bool | None:
    """Return whether a node is up; None if unknown.

    seen: the driver's state, from the cluster's events; unknown for a node that it never connected to, until the first
    event. gossip: the node's status in gossip. A node that was stopped announced so; one that crashed remains "normal"
    forever, so "normal" proves nothing (Cassandra 5.0.8).
    """
    return False if seen is None and gossip == _STOPPED else seen


def _is_remote(datacenter: str) -> bool:
    return bool(datacenter != settings.CASSANDRA["datacenter"])


def _first(answer: list[Row] | NodeUnreachable | None, *, width: int) -> Row:
    """Return the only row of an answer, or a row of None values if there is none."""
    if answer is None or isinstance(answer, NodeUnreachable) or not answer:
        return (None,) * width
    return answer[0]


def _read_gossip() -> dict[str, tuple[str | None, int | None]]:
    """Return (status, bytes on disk) of each node, by the gossip of one node."""
    states: dict[str, tuple[str | None, int | None]] = {}
    for address, load, status in cassandra.execute(_GOSSIP, consistency=cassandra.LOCAL_ONE):
        gossip_status = str(status).partition(",")[0].lower() if status else None
        try:
            states[str(address)] = (gossip_status, round(float(load)))
        except (TypeError, ValueError):
            # The node has not gossiped its load yet.
            states[str(address)] = (gossip_status, None)
    return states
