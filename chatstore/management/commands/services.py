"""`manage.py services`: print which servers are in use and whether they respond."""

import json
import sys
from typing import Any

from django.core.management.base import CommandParser

from chatstore.management.inert import InertCommand
from chatstore.operations.services import Service, describe_services


class Command(InertCommand):
    help = "Print which servers are in use. Exits with 1 unless all of them respond."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object, without passwords")

    def handle(self, *args: Any, **options: Any) -> None:
        services = describe_services()
        if options["json"]:
            self.stdout.write(json.dumps(services, indent=2))
        else:
            self.stdout.write("\n".join(format_services(services)))
        if not services["ok"]:
            sys.exit(1)


def format_services(services: Service) -> list[str]:
    """Return a line for each server and for each Cassandra node."""
    lines = [f"web        {services['web']['url']}"]
    for name in ("cassandra", "postgres", "redis"):
        service = services[name]
        host = service.get("host") or ", ".join(service["hosts"])
        place = "local" if service["local"] else "external"
        state = f"version {service['version']}"
        if not service["ok"]:
            state = service.get("error", "not all nodes are up")
        what = service.get("keyspace") or service.get("database") or ""
        lines.append(f"{name:10} {host}:{service['port']} {what} ({place}) {state}")
    for node in services["cassandra"]["nodes"]:
        state = {True: "up", False: "down", None: "unknown"}[node["up"]]
        lines.append(f"  node     {node['host']} {state}, JMX port {node['jmx_port']}")
    return lines
