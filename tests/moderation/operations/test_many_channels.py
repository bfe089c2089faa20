"""A selection over many channels deletes exactly its matches, in channels visible to the moderator."""

import secrets
from dataclasses import replace

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import NotFound
from chatstore.domain.messages import Message
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from chatstore.store import authors, ledger, messages
from moderation.domain.filters import (
    All,
    AnyOf,
    AnyWord,
    Author,
    Content,
    Filter,
    FirstSeenWithin,
    FromBot,
    Has,
    Not,
    Pattern,
    Pinned,
    ReplyTo,
    Similar,
    Words,
    YoungAccount,
)
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.management.demo_accounts import set_roles
from moderation.operations.preview.purge_summary import preview_of
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.selection.summary import selection_summary
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from tests.moderation.channels import (
    WILMA,
    buckets_of,
    choose,
    ids_of,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)

IDS = old_ids(300)
BUCKET = buckets_of(IDS)[0]


@pytest.fixture
def raider() -> int:
    """Return an author unknown to other tests: they are searched in every existing channel."""
    return secrets.randbits(60)


def make_guild(*channels: Channel) -> Guild:
    guild = Guild.objects.create(id=secrets.randbits(60), name="Gophers")
    Channel.objects.filter(pk__in=[channel.pk for channel in channels]).update(guild=guild)
    return guild


def test_an_author_purge_finds_every_channel_they_posted_in(mona: User, raider: int) -> None:
    first, second, untouched = make_channel(), make_channel(), make_channel()
    for channel, posted_ids in ((first, IDS[:120]), (second, IDS[:7])):
        write(channel, posted_ids, author=raider)
        write(channel, IDS[200:], author=WILMA)
    write(untouched, IDS, author=WILMA)
    purge = purge_now(mona, Selection(where=Author((raider,))))
    assert (purge.state, purge.manifest) == (PurgeState.DONE, 127)
    # Only the buckets in which they had posted were read.
    assert purge.scanned == 120 + 7 + 2 * len(IDS[200:])
    assert ids_of(first, BUCKET) == ids_of(second, BUCKET) == IDS[200:]
    assert ids_of(untouched, BUCKET) == IDS
    assert selection_summary(purge) == f"all messages by user {raider} in all channels, except pinned"


def test_a_whole_guild_is_searched_and_no_other(mona: User) -> None:
    first, second, elsewhere = make_channel(), make_channel(), make_channel()
    guild = make_guild(first, second)
    for channel in (first, second, elsewhere):
        write(channel, IDS[:50], content="Free NITRO for you")
        write(channel, IDS[50:], content="nitrogen is a gas")
    selection = Selection(guild_id=guild.pk, where=Words("nitro"))
    purge = purge_now(mona, selection)
    assert (purge.state, purge.manifest) == (PurgeState.DONE, 100)
    assert ids_of(first, BUCKET) == ids_of(second, BUCKET) == IDS[50:]
    assert ids_of(elsewhere, BUCKET) == IDS
    per_channel = {bucket.channel_id: bucket.matched for bucket in preview_of(purge).per_bucket}
    assert per_channel == {first.pk: 50, second.pk: 50}
    assert (
        selection_summary(purge) == "all messages in all channels of Gophers containing the word “nitro”, except pinned"
    )


def test_one_channel_of_several_can_be_undone(mona: User, raider: int) -> None:
    first, second = make_channel(), make_channel()
    for channel in (first, second):
        write(channel, IDS[:150], author=raider)
    both = Selection(channel_ids=(first.pk, second.pk), where=Author((raider,)))
    purge = purge_now(mona, both)
    assert purge.manifest == 300
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(channel_ids=(second.pk,)), reason="Appeal accepted")
    assert run_to_end(purge).state == PurgeState.PARTLY_UNDONE
    assert (undo_totals_of(undo).requested, undo_totals_of(undo).restored) == (150, 150)
    assert (ids_of(first, BUCKET), ids_of(second, BUCKET)) == ([], IDS[:150])


def test_channels_that_a_moderator_cannot_see_are_refused(mona: User) -> None:
    channel = make_channel()
    for selection in (
        Selection(channel_ids=(channel.pk, secrets.randbits(60)), where=Words("x")),
        Selection(guild_id=secrets.randbits(60), where=Words("x")),
    ):
        with pytest.raises(NotFound):
            draft_purge(moderator=mona, selection=selection)


def test_a_moderator_who_lost_the_permission_before_the_scan_finds_nothing(mona: User) -> None:
    channel = make_channel()
    write(channel, IDS)
    selection = choose(channel.pk, after_id=IDS[0])
    set_roles(mona, ())
    mona = User.objects.get(pk=mona.pk)
    with pytest.raises(Exception, match="permission"):
        draft_purge(moderator=mona, selection=selection)


BOT, WEBHOOK, PERSON = 901, 902, 903

PLAIN = Message(channel_id=0, message_id=0, author_id=PERSON, content="nothing to see")


@pytest.mark.parametrize(
    ("where", "matching"),
    [
        (Has(Content.LINK), replace(PLAIN, content="see https://bad.example")),
        (Has(Content.ATTACHMENT), replace(PLAIN, attachments=('{"id": "1"}',))),
        (Has(Content.EMBED), replace(PLAIN, embeds=('{"title": "x"}',))),
        (Has(Content.MENTION), replace(PLAIN, mentions=(PERSON,))),
        (Pattern(r"fr[e3]{2}\s+n[i1]tro"), replace(PLAIN, content="FR3E  n1tro")),
        (AnyWord("eggs spam"), replace(PLAIN, content="Eggs, anyone?")),
        (Similar("Free NITRO 12!"), replace(PLAIN, content="fr\u200bee  n.i.t.r.oo 7 🔥")),
        (
            Similar("free coins for everybody at coins.example"),
            replace(PLAIN, content="FREE coins for everybody, coins.example now"),
        ),
        (YoungAccount(1), replace(PLAIN, author_id=IDS[3])),
        (All((FirstSeenWithin(1), Not(Author((PERSON,))))), replace(PLAIN, author_id=secrets.randbits(60))),
        (FromBot(), replace(PLAIN, author_id=BOT)),
        (FromBot(), replace(PLAIN, author_id=WEBHOOK, webhook_id=5, author_name="hook")),
        (ReplyTo(IDS[0]), replace(PLAIN, type=19, reference=(1, IDS[0]))),
        (AnyOf((Words("spam"), Has(Content.EMBED))), replace(PLAIN, content="Spam!")),
        (All((Not(Author((PERSON,))), Not(Words("spam")))), replace(PLAIN, author_id=WILMA)),
    ],
)
def test_a_condition_matches_messages_as_they_are_stored(mona: User, where: Filter, matching: Message) -> None:
    ChatUser.objects.update_or_create(pk=BOT, defaults={"name": "bot", "is_bot": True})
    channel = make_channel()
    store(channel, [replace(PLAIN, message_id=i) for i in IDS[1:10:2]] + [replace(matching, message_id=IDS[4])])
    purge = purge_now(mona, Selection(channel_ids=(channel.pk,), where=where))
    assert purge.manifest == 1
    assert ids_of(channel, BUCKET) == IDS[1:10:2]


def test_pinned_messages_are_kept_unless_included(mona: User) -> None:
    channel = make_channel()
    store(channel, [replace(PLAIN, message_id=i, pinned=i == IDS[3]) for i in IDS[:10]])
    where = Author((PERSON,))
    purge = purge_now(mona, Selection(channel_ids=(channel.pk,), where=where))
    assert purge.manifest == 9
    assert ids_of(channel, BUCKET) == [IDS[3]]
    meant = Selection(channel_ids=(channel.pk,), where=All((where, Pinned())), with_pinned=True)
    assert preview(mona, meant).manifest == 1


def store(channel: Channel, rows: list[Message]) -> None:
    bucket = bucket_of(rows[0].message_id)
    ledger.ensure_row(channel.pk, bucket)
    authors.ensure_author_buckets({(row.author_id, bucket, channel.pk) for row in rows})
    messages.insert_messages([replace(row, channel_id=channel.pk) for row in rows], stamp_us=messages.posted_stamp)
