"""A message's bucket and time follow from its id."""

import datetime as dt

from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import first_id_at, unix_ms


def test_bucket_and_time_come_from_the_id() -> None:
    posted_at = dt.datetime(2015, 1, 11, 0, 0, 0, 5000, tzinfo=dt.UTC)
    message = Message(channel_id=1, message_id=first_id_at(unix_ms(posted_at)), author_id=2)
    assert message.bucket == 1
    assert message.posted_at == posted_at
