"""`python -m devstack COMMAND`: the commands of the Makefile, and manual control of the local servers."""

import argparse
import os
import sys

from chatstore.local.layout import CASSANDRA_HOSTS, STACK_NAMES, Stack, WrongSetting, read_stack
from devstack.cassandra import name_nodetool
from devstack.problems import Problem
from devstack.processes import find_process
from devstack.running import run_stack, run_with_servers
from devstack.servers import (
    answers,
    delete_data,
    list_servers,
    lock_stack,
    set_keep_running,
    start_node,
    start_servers,
    stop_node,
    stop_servers,
)


def main(arguments: list[str]) -> int:
    """Run one command; return its exit code. Errors are printed as one line on stderr."""
    options = parse_arguments(arguments)
    try:
        stack = read_stack(os.environ, name=options.stack)
        return int(options.handler(stack, options))
    except (Problem, WrongSetting) as problem:
        print(problem, file=sys.stderr)
        return 1


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devstack", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    everything = commands.add_parser("run", help="start everything and stop it on Ctrl-C")
    everything.set_defaults(handler=run_everything, stack="run")
    for name, handler, text in (
        ("up", bring_up, "start the servers and leave them running"),
        ("down", take_down, "stop the servers"),
        ("status", show_status, "show which servers are up"),
        ("stop-node", end_node, "stop one Cassandra node"),
        ("start-node", begin_node, "start one Cassandra node again"),
        ("nodetool", run_nodetool, "run Cassandra's nodetool on one node"),
        ("exec", run_with, "run a command while the servers are up"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("stack", choices=STACK_NAMES)
        command.set_defaults(handler=handler)
        if name in {"stop-node", "start-node"}:
            command.add_argument("node", type=int, choices=(1, 2))
        if name == "nodetool":
            command.add_argument("node", choices=("1", "2", *CASSANDRA_HOSTS), help="number or address of the node")
        if name == "exec":
            command.add_argument("--fresh", action="store_true", help="delete the servers' data before they start")
        if name in {"nodetool", "exec"}:
            command.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def run_everything(stack: Stack, _options: argparse.Namespace) -> int:
    return run_stack(stack)


def run_with(stack: Stack, options: argparse.Namespace) -> int:
    if options.fresh:
        with lock_stack(stack):
            delete_data(stack)
    return run_with_servers(stack, options.arguments)


def bring_up(stack: Stack, _options: argparse.Namespace) -> int:
    with lock_stack(stack):
        started = start_servers(stack)
        set_keep_running(stack, kept=True)
    print(f"{stack.name}: all servers are up ({', '.join(started) or 'none had to be'} started).")
    return 0


def take_down(stack: Stack, _options: argparse.Namespace) -> int:
    with lock_stack(stack):
        set_keep_running(stack, kept=False)
        killed = stop_servers(stack)
    print(f"{stack.name}: all servers are down.")
    if killed:
        print(f"Killed because they did not stop in time: {', '.join(killed)}.")
    return 0


def show_status(stack: Stack, _options: argparse.Namespace) -> int:
    missing = 0
    for server in list_servers(stack):
        process = find_process(stack, server.name)
        up = process is not None and answers(server.host, server.port)
        missing += not up
        state = f"up, pid {process.pid}" if process and up else "down"
        print(f"{server.name:12} {server.host}:{server.port} {state}")
    return 1 if missing else 0


def end_node(stack: Stack, options: argparse.Namespace) -> int:
    stop_node(stack, options.node - 1)
    return 0


def begin_node(stack: Stack, options: argparse.Namespace) -> int:
    start_node(stack, options.node - 1)
    return 0


def run_nodetool(stack: Stack, options: argparse.Namespace) -> int:
    known = options.node in CASSANDRA_HOSTS
    index = CASSANDRA_HOSTS.index(options.node) if known else int(options.node) - 1
    command = name_nodetool(stack, index, *options.arguments)
    # Replace this process, so that stopping it stops nodetool, without a time limit for repairs.
    os.execv(command[0], command)  # noqa: S606 - no shell


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
