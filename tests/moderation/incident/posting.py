"""A gateway simulator: posts at a steady rate and prints each stored message as a line `id content`.

Runs in a separate process by `manage.py shell` and ends when its input does. Every tenth post is edited, which prints
its id once more.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from chatstore.operations.gateway import messages

POSTING_THREADS = 6
"""At 200 posts per second each post may take 30 ms, its duration beside a busy purge."""

EDIT_EVERY = 10


def post_continuously(channel_id: int, *, author_id: int, rate: float) -> None:
    """Post `rate` messages per second until the input ends. An error in a thread ends the process."""
    numbers = itertools.count()
    began = time.monotonic()
    stop = threading.Event()

    def post_at_rate() -> None:
        while not stop.wait(max(0.0, began + (number := next(numbers)) / rate - time.monotonic())):
            posted = messages.post_message(channel_id, author_id=author_id, content=f"live talk {number}")
            print_stored(posted.message_id, posted.content)
            if number % EDIT_EVERY == 0:
                content = f"{posted.content}, edited"
                print_stored(
                    messages.edit_message(channel_id, posted.message_id, actor=author_id, content=content).message_id,
                    content,
                )

    with ThreadPoolExecutor(POSTING_THREADS) as pool:
        futures = [pool.submit(post_at_rate) for _ in range(POSTING_THREADS)]
        sys.stdin.read()
        stop.set()
        for each in futures:
            each.result()


def print_stored(message_id: int, content: str) -> None:
    """Print one line with a single write, so that lines of two threads never mix."""
    os.write(1, f"{message_id} {content}\n".encode())
