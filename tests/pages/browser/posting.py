"""Messages that arrive while a page is open."""

from __future__ import annotations

from tests.moderation.channels import VICTOR
from tests.pages.serving import Site

# What was posted is sent to Redis by a thread, which this process would not wait for.
_POST = """
from chatstore.gateway import post_message
from chatstore.store import activity
activity._sender.notify = lambda: None
for number in range({count}):
    post_message({channel}, author_id={author}, content=f"arrived {{number}}")
activity._send()
"""


def post_arrivals(site: Site, channel_id: int, count: int, *, author: int = VICTOR) -> None:
    """Post "arrived 0", "arrived 1" …; when this returns, polls notice them."""
    site.manage("shell", "-c", _POST.format(count=count, channel=channel_id, author=author))
