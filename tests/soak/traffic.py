"""A process that posts into the channel all the time, during every outage."""

from __future__ import annotations

import threading

from django.db import Error, connections

from chatstore.domain.errors import StoreUnavailable, WriteRefused
from chatstore.models import Channel
from chatstore.operations.gateway.messages import post_message
from tests.soak.scene import POSTER

EVERY_SECONDS = 0.2


class ChatTraffic:
    """Posting thread. stored: content of acknowledged posts by id. refused: posts that were given up."""

    def __init__(self, channel: Channel) -> None:
        self.stored: dict[int, str] = {}
        self.refused = 0
        self._channel = channel
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="talk")
        self._thread.start()

    def end(self) -> None:
        """Stop posting."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(EVERY_SECONDS):
            number += 1
            try:
                posted = post_message(self._channel.id, author_id=POSTER, content=f"live talk {number}")
            except (StoreUnavailable, WriteRefused, Error):
                self.refused += 1
                connections.close_all()
            else:
                self.stored[posted.message_id] = posted.content
        connections.close_all()
