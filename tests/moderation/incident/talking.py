"""A chat's gateway: it posts at a steady rate and prints what was stored, a line each, `id content`.

Run in a process of its own by `manage.py shell`; it ends when its input does. Every tenth post is
edited, which prints its id once more.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from chatstore.operations.gateway import messages

TALKERS = 6
"""At 200 posts a second each may take 30 ms, as it does beside a busy purge."""

EDIT_EVERY = 10


def talk(channel_id: int, *, author_id: int, rate: float) -> None:
    """Posts `rate` messages a second until the input ends. What a talker raises ends the process."""
    numbers = itertools.count()
    began = time.monotonic()
    over = threading.Event()

    def talker() -> None:
        while not over.wait(max(0.0, began + (number := next(numbers)) / rate - time.monotonic())):
            posted = messages.post_message(channel_id, author_id=author_id, content=f"live talk {number}")
            say(posted.message_id, posted.content)
            if number % EDIT_EVERY == 0:
                content = f"{posted.content}, edited"
                say(
                    messages.edit_message(channel_id, posted.message_id, actor=author_id, content=content).message_id,
                    content,
                )

    with ThreadPoolExecutor(TALKERS) as pool:
        talkers = [pool.submit(talker) for _ in range(TALKERS)]
        sys.stdin.read()
        over.set()
        for each in talkers:
            each.result()


def say(message_id: int, content: str) -> None:
    """One line in one write, so that those of two talkers never mix."""
    os.write(1, f"{message_id} {content}\n".encode())
