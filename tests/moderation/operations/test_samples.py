"""The samples of a preview: the first and the last messages by time, with their kept neighbours."""

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.preview.manifest_summary import summary_of
from moderation.operations.preview.samples import (
    CONTEXT,
    MAX_READS,
    SAMPLES,
    SAMPLES_OF_SEVERAL,
    Samples,
    SampleWindow,
    sample_manifest,
)
from tests.moderation.channels import VICTOR, WILMA, by_victor, make_channel, old_ids, preview, recent_ids, write


def samples_of(user: User, purge: Purge) -> Samples:
    return sample_manifest(user, purge, summary_of(purge))


def shown(window: SampleWindow) -> list[tuple[int, bool]]:
    return [(message.message_id, message.message_id in window.matched) for message in window.messages]


def test_a_sample_has_two_kept_messages_on_either_side(mona: User, channel: Channel) -> None:
    ids = old_ids(11)
    write(channel, [ids[5]])
    write(channel, ids[:5] + ids[6:], author=WILMA)
    samples = samples_of(mona, preview(mona, by_victor(channel)))
    assert [shown(window) for window in samples.oldest] == [[(i, i == ids[5]) for i in ids[3:8]]]
    assert samples.newest == []


def test_close_samples_share_a_window_and_distant_ones_do_not(mona: User, channel: Channel) -> None:
    ids = old_ids(200)
    victors = {ids[10], ids[13], ids[150]}
    write(channel, sorted(victors))
    write(channel, [i for i in ids if i not in victors], author=WILMA)
    runs = samples_of(mona, preview(mona, by_victor(channel))).oldest
    assert [[i for i, _ in shown(window)] for window in runs] == [ids[8:16], ids[148:153]]


def test_of_samples_that_are_far_apart_the_outermost_are_shown(mona: User, channel: Channel) -> None:
    ids = old_ids(3_600)
    positions = range(30, 3_600, 60)
    victors = [ids[position] for position in positions]
    write(channel, victors)
    write(channel, [i for i in ids if i not in victors], author=WILMA)
    samples = samples_of(mona, preview(mona, by_victor(channel)))
    for windows, ends in ((samples.oldest, positions[:MAX_READS]), (samples.newest, positions[-MAX_READS:])):
        assert [shown(window) for window in windows] == [
            [(ids[position], position == end) for position in range(end - 2, end + 3)] for end in ends
        ]


def test_a_long_wave_shows_its_first_and_last_messages(mona: User, channel: Channel) -> None:
    ids = old_ids(300)
    write(channel, ids[20:280])
    write(channel, ids[:20] + ids[280:], author=WILMA)
    samples = samples_of(mona, preview(mona, by_victor(channel)))
    (oldest,), (newest,) = samples.oldest, samples.newest
    # The two messages beside the last sample are deleted too, and are marked so.
    assert shown(oldest) == [(i, i >= ids[20]) for i in ids[18 : 20 + SAMPLES + 2]]
    assert shown(newest) == [(i, i < ids[280]) for i in ids[280 - SAMPLES - 2 : 282]]


def test_no_message_is_shown_at_both_ends(mona: User, channel: Channel) -> None:
    ids = old_ids(40)
    write(channel, ids[10:30])
    write(channel, ids[:10] + ids[30:], author=WILMA)
    samples = samples_of(mona, preview(mona, by_victor(channel)))
    (oldest,), (newest,) = samples.oldest, samples.newest
    assert shown(oldest) + shown(newest) == [(i, i in ids[10:30]) for i in ids[8:32]]


def test_the_last_messages_are_left_out_if_they_are_beside_the_first_ones(mona: User, channel: Channel) -> None:
    ids = old_ids(SAMPLES + 2)
    write(channel, ids)
    samples = samples_of(mona, preview(mona, by_victor(channel)))
    assert [shown(window) for window in samples.oldest] == [[(i, True) for i in ids]]
    assert samples.newest == []
    assert samples.is_whole


def test_each_of_several_channels_has_its_first_and_its_last_messages(mona: User, channel: Channel) -> None:
    other, old, recent = make_channel(), old_ids(40), recent_ids(40)
    write(channel, recent)
    write(other, old)
    purge = preview(mona, Selection(channel_ids=(channel.pk, other.pk), where=Author((VICTOR,))))
    samples = samples_of(mona, purge)
    each = SAMPLES_OF_SEVERAL // 2 + CONTEXT
    ids = {channel: recent, other: old}
    assert {window.channel: sorted(window.matched) for window in samples.oldest} == {
        one: ids[one][:each] for one in ids
    }
    assert {window.channel: sorted(window.matched) for window in samples.newest} == {
        one: ids[one][-each:] for one in ids
    }


def test_messages_that_are_far_apart_in_several_channels_have_samples_too(mona: User, channel: Channel) -> None:
    channels = [channel, make_channel()]
    ids = [message_id for ago in (6, 5, 4) for message_id in old_ids(1, buckets_ago=ago)]
    for one in channels:
        write(one, ids)
    purge = preview(mona, Selection(channel_ids=tuple(one.pk for one in channels), where=Author((VICTOR,))))
    samples = samples_of(mona, purge)
    assert samples.is_whole
    assert {window.channel for window in samples.oldest} == {*channels}


def test_a_preview_that_is_narrowed_meanwhile_has_the_samples_of_what_is_left(mona: User, channel: Channel) -> None:
    other = make_channel()
    for one in (channel, other):
        write(one, old_ids(3))
    purge = preview(mona, Selection(channel_ids=(channel.pk, other.pk), where=Author((VICTOR,))))
    before = summary_of(purge)
    purge.manifest_buckets.filter(channel_id=other.pk).delete()
    assert {window.channel for window in sample_manifest(mona, purge, before).oldest} == {channel}


def test_of_many_channels_the_largest_have_samples(mona: User, channel: Channel) -> None:
    channels = [channel, *(make_channel() for _ in range(4))]
    ids = old_ids(60)
    for number, one in enumerate(channels):
        write(one, ids[: 10 + 10 * number])
    purge = preview(mona, Selection(channel_ids=tuple(one.pk for one in channels), where=Author((VICTOR,))))
    samples = samples_of(mona, purge)
    for windows in (samples.oldest, samples.newest):
        assert {window.channel for window in windows} == {*channels[-MAX_READS:]}
    assert not samples.is_whole


def test_without_visible_channels_there_are_no_samples(mona: User, tess: User, channel: Channel) -> None:
    write(channel, old_ids(10))
    samples = samples_of(tess, preview(mona, by_victor(channel)))
    assert samples == Samples()
