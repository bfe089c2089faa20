"""A purge of everything by an author includes channels without a row in Postgres, and names them."""

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.gateway.messages import post_message
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.operations.preview.manifest_summary import summary_of
from tests.chatstore.channels import fresh_id
from tests.moderation.channels import ids_of, make_channel, purge_now


def test_messages_of_an_unknown_channel_are_deleted_too(mona: User) -> None:
    author, known, unknown_id = fresh_id(), make_channel(), fresh_id()
    here = post_message(known.pk, author_id=author, content="buy").message_id
    there = post_message(unknown_id, author_id=author, content="buy").message_id
    purge = purge_now(mona, Selection(where=Author((author,))))
    assert (purge.state, purge.manifest) == (PurgeState.DONE, 2)
    unknown = Channel.objects.get(pk=unknown_id)
    assert unknown.name == f"unknown {unknown_id}"
    assert {one.channel_id for one in summary_of(purge).channels} == {known.pk, unknown_id}
    assert ids_of(known, bucket_of(here)) == ids_of(unknown, bucket_of(there)) == []
