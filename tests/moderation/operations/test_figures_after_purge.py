"""A purge records the same figures of a bucket as the ledger reconciliation."""

from chatstore.domain.buckets import bucket_of
from chatstore.models.users import User
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.store import figures, messages
from tests.moderation.channels import WILMA, by_victor, make_channel, old_ids, purge_now, write


def test_the_remains_of_a_late_edit_are_not_counted_as_a_live_message(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(201)
    write(channel, ids[:150])
    write(channel, ids[150:200], author=WILMA)
    messages.update_columns(channel.id, ids[200], {"content": "an edit of what is gone"}, stamp_us=wall_clock_us())
    purge_now(mona, by_victor(channel))
    noted = figures.read_figures(channel.id)[bucket_of(ids[0])]
    assert noted["live_rows"].value == 50
