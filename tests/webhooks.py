"""A web server that receives webhooks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class WebhookServer:
    """Records the requests and answers as configured."""

    url: str = ""
    status: int = 204
    redirects_to: str = ""
    get_paths: list[str] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def receive_webhooks() -> Iterator[WebhookServer]:
    """Run the server, in a thread."""
    state = WebhookServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.received.append(json.loads(body))
            self.send_response(state.status)
            if state.redirects_to:
                self.send_header("Location", state.redirects_to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            state.get_paths.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server names it so
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
