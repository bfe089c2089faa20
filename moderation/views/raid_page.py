"""Context of the page about a raid: accounts with their signs, texts that are alike, time ranges, what is kept."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.http import QueryDict
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, ngettext

from chatstore.domain.errors import BadInput
from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS, MINUTE_MS, time_at
from chatstore.domain.snowflakes import ms_of, parse_snowflake
from chatstore.operations.gateway.timeline import name_mentioned_users, name_users
from moderation.domain.outcomes import DeletionStatus
from moderation.domain.raids import Account, Sign, SimilarTexts, most_in_a_minute
from moderation.models import Purge
from moderation.operations.access.visibility import Actor
from moderation.operations.lookup.chat_users import account_made_at
from moderation.operations.lookup.mentioned import name_mentioned
from moderation.operations.raids.review import RaidReview, count_included, minute_of
from moderation.presentation.first_seen import format_first_seen
from moderation.presentation.formats import format_axis_day, format_clock, format_number
from moderation.presentation.raid_chart import RaidChart, count_minutes
from moderation.presentation.wording import count_messages
from moderation.views.purge_times import ChannelTimes, TimeBar, describe_counts, stack_parts
from moderation.views.rows import Writer, rows_of, writer_of

MAX_ACCOUNTS = 800
"""Below the number of fields that a form may have, 1,000."""

MAX_OTHER_ACCOUNTS = 60
MAX_SIMILAR = 6
MAX_VARIANTS = 3
KEPT_SAMPLES = 5

EARLIER_MINUTES = (60, 30, 15, 10, 5, 2, 1)
LATER_MINUTES = (1, 2, 5, 10, 15, 30)
"""Offered besides the start of the raid, before and after it."""


MIN_REST_MS = 2 * MINUTE_MS
REST_SHARE = 0.1
"""Time that the chart shows after the newest message of a raid: at least so much, and such a share of the raid."""

CHART_HEIGHT = 56
"""Pixels of the tallest bar."""

_LABELS = {
    DeletionStatus.TO_DELETE: gettext_lazy("seem to take part"),
    DeletionStatus.KEPT: gettext_lazy("others"),
}


class Moment(NamedTuple):
    """A time that can be chosen. value: Unix minutes, "" for no end. group: heading of its part of the list, or ""."""

    value: str
    label: str
    is_chosen: bool
    group: str = ""


@dataclass(frozen=True, slots=True)
class AccountLine:
    """An account as the page lists it. sample: its newest message with text.

    If others wrote the same text, as one of the signs states, it is the newest message with that text. included: number
    of its messages that purges under way include.
    """

    account: Account
    writer: Writer
    handle: str
    created_at: dt.datetime | None
    sample: Message
    signs: Sequence[str]
    is_checked: bool
    included: int


@dataclass(frozen=True, slots=True)
class RaidTimes:
    """The bars of the chart, as one row. They have no links, which would lose the selection of accounts.

    first, last: the ends of its axis in words.
    """

    rows: Sequence[ChannelTimes]
    statuses: Sequence[tuple[DeletionStatus, str | Promise]]
    first: str
    last: str
    height: int = CHART_HEIGHT

    @property
    def bars(self) -> Sequence[TimeBar]:
        """Those of the only row."""
        return self.rows[0].bars


@dataclass(frozen=True, slots=True)
class SimilarLine:
    """Texts that are alike. samples: a message with each, the most frequent first.

    account_ids: of those that wrote them, separated by spaces; "" if the page does not list all of them.
    """

    group: SimilarTexts
    samples: Sequence[Message]
    account_ids: str


def describe_raid(user: Actor, review: RaidReview, fields: QueryDict, under_way: Iterable[Purge]) -> dict[str, Any]:
    """Return the template's context. fields: of the form, which keep what was selected. under_way: purges of it.

    users, mentioned: of all samples, whose texts may mention them.
    """
    shared = _shared_texts(review.assessment.similar)
    newest = _newest_texts(review.recent.messages, shared)
    chosen = _read_chosen(fields, [account.author_id for account in review.assessment.accounts])
    included = count_included(review, under_way)
    lines = [
        _describe_account(account, review, newest, shared, chosen, included=included)
        for account in review.assessment.accounts
    ]
    taking_part = [line for line in lines if line.account.takes_part]
    others = [line for line in lines if not line.account.takes_part]
    spared = {line.account.author_id for line in others}
    kept = [message for message in review.recent.messages if message.author_id in spared]
    samples = kept[:KEPT_SAMPLES]
    established = sum(line.is_checked and line.account.is_established for line in lines)
    end_ms = _chart_end_ms(review, [line.account.message_ids[-1] for line in lines if line.is_checked])
    similar = review.assessment.similar
    signs_of_all, accounts = _take_out_shared_signs(taking_part[:MAX_ACCOUNTS])
    other_accounts = others[:MAX_OTHER_ACCOUNTS]
    shown = {line.account.author_id for line in (*accounts, *other_accounts)}
    groups = list(_describe_groups(similar[:MAX_SIMILAR], review.recent.messages, shown))
    in_lists = [message for group in groups for message in group.samples]
    in_lists += [line.sample for line in (*accounts, *other_accounts)]
    users = name_mentioned_users(in_lists, known={**review.recent.users, **name_users(samples)})
    return {
        "review": review,
        "channel": review.channel,
        "users": users,
        "mentioned": name_mentioned(user, [*samples, *in_lists], channels=[review.channel]),
        "accounts": accounts,
        "signs_of_all": signs_of_all,
        "more_accounts": len(taking_part[MAX_ACCOUNTS:]),
        "account_count": len(taking_part),
        "raid_count": len(review.recent.messages) - len(kept),
        "others": other_accounts,
        "other_count": len(others),
        "has_chosen_others": any(line.is_checked for line in other_accounts),
        "more_others": len(others[MAX_OTHER_ACCOUNTS:]),
        "listed": _join_ids(chosen.keys() | shown),
        "chosen_elsewhere": _join_ids(author_id for author_id in chosen.keys() - shown if chosen[author_id]),
        "selects_only": _selects_only(fields),
        "established": established,
        "similar": groups,
        "more_similar": len(similar[MAX_SIMILAR:]),
        "kept_count": len(kept),
        "kept_samples": rows_of(reversed(samples), users),
        "chart": (chart := _count_minutes(review, spared, end_ms=end_ms)),
        "times": _draw_times(chart, review, end_ms=end_ms),
        "moments": _list_moments(chart, review, end_ms=end_ms),
        "starts": list(_offer_starts(review)),
        "ends": list(_offer_ends(review)),
    }


def _read_chosen(fields: QueryDict, account_ids: Collection[int]) -> Mapping[int, bool]:
    """Return which of the accounts that the form has listed are selected, to keep the choice for another time range.

    Those without messages in the time that the form showed were selected, or not, in an earlier one. `select` replaces
    the selection by exactly these accounts: none that the page lists by now (account_ids) is added to them.
    """
    kept = [*fields.getlist("account"), fields.get("chosen_elsewhere", "")]
    try:
        selected = _split_ids([fields.get("select", "")] if "select" in fields else kept)
        listed = _split_ids([fields.get("listed", "")]).union(account_ids if _selects_only(fields) else ())
    except BadInput:
        return {}
    return {author_id: author_id in selected for author_id in listed}


def _selects_only(fields: QueryDict) -> bool:
    """Return whether the accounts of a group were selected, so that no other account is added by itself.

    `only` keeps that for another time, in which other accounts may have messages, or have posted since.
    """
    return "select" in fields or fields.get("only") == "1"


def _split_ids(texts: Iterable[str]) -> set[int]:
    return {parse_snowflake(part) for text in texts for part in text.split()}


def _join_ids(author_ids: Iterable[int]) -> str:
    return " ".join(str(author_id) for author_id in sorted(author_ids))


class SharedText(NamedTuple):
    """What an account wrote as others did. texts: the group that most accounts wrote. others: number of these."""

    texts: Collection[str]
    others: int


def _shared_texts(similar: Iterable[SimilarTexts]) -> dict[int, SharedText]:
    """Return the texts of each account that others wrote too, by its ID."""
    shared: dict[int, SharedText] = {}
    for group in sorted(similar, key=lambda group: len(group.author_ids)):
        shared |= dict.fromkeys(group.author_ids, SharedText(frozenset(group.texts), len(group.author_ids) - 1))
    return shared


def _newest_texts(messages: Sequence[Message], shared: Mapping[int, SharedText]) -> dict[int, Message]:
    """Return each author's newest message with a shared text, or else with text, or else the newest.

    messages: newest first.
    """
    newest: dict[int, Message] = {}
    ranks: dict[int, int] = {}
    for message in messages:
        author_id = message.author_id
        is_shared = author_id in shared and message.content in shared[author_id].texts
        rank = 2 if is_shared else int(bool(message.content))
        if rank > ranks.get(author_id, -1):
            newest[author_id], ranks[author_id] = message, rank
    return newest


def _take_out_shared_signs(lines: Sequence[AccountLine]) -> tuple[Sequence[str], Sequence[AccountLine]]:
    """Return the signs that all of several accounts have, and the lines without these."""
    if len(lines) < 2:
        return (), lines
    of_all = [sign for sign in lines[0].signs if all(sign in line.signs for line in lines)]
    return of_all, [replace(line, signs=[sign for sign in line.signs if sign not in of_all]) for line in lines]


def _describe_account(
    account: Account,
    review: RaidReview,
    newest: Mapping[int, Message],
    shared: Mapping[int, SharedText],
    chosen: Mapping[int, bool],
    *,
    included: Mapping[int, int],
) -> AccountLine:
    message = newest[account.author_id]
    user, writer = review.recent.users.get(account.author_id), writer_of(message, review.recent.users)
    return AccountLine(
        account=account,
        writer=writer,
        handle=user.handle_beside(writer.name) if user else "",
        created_at=account_made_at(account.author_id, now=timezone.now()),
        sample=message,
        signs=[*_describe_join(account, review.joined), *_describe_signs(account, review, shared)],
        is_checked=chosen.get(account.author_id, account.takes_part),
        included=included.get(account.author_id, 0),
    )


def _describe_join(account: Account, joined: Mapping[int, int]) -> Iterator[str]:
    """Yield how long before its first message here an account joined the guild, if that is less than a day."""
    joined_ms = joined.get(account.author_id)
    if joined_ms is None or not 0 <= (since := ms_of(account.message_ids[0]) - joined_ms) < DAY_MS:
        return
    hours, minutes = since // HOUR_MS, since // MINUTE_MS
    if hours:
        text = ngettext("posted %(count)s hour after joining", "posted %(count)s hours after joining", hours)
    elif minutes:
        text = ngettext("posted %(count)s minute after joining", "posted %(count)s minutes after joining", minutes)
    else:
        text = gettext("posted less than a minute after joining")
    yield text % {"count": format_number(hours or minutes)}


def _describe_signs(account: Account, review: RaidReview, shared: Mapping[int, SharedText]) -> Iterator[str]:
    now = time_at(review.now_ms)
    if account.is_established:
        yield gettext("here for over a year")
    for sign in account.signs:
        match sign:
            case Sign.YOUNG:
                yield gettext("new account")
            case Sign.FIRST_SEEN:
                made_at = account_made_at(account.author_id, now=now)
                yield format_first_seen(account.first_seen, made_at=made_at, now=now)
            case Sign.SAME_TEXT:
                others = shared[account.author_id].others
                text = ngettext("same text as %(count)s other", "same text as %(count)s others", others)
                yield text % {"count": format_number(others)}
            case Sign.MENTIONS:
                yield gettext("mass mentions")
            case Sign.LINKS:
                yield gettext("links")
            case Sign.FLOOD:
                yield gettext("%(count)s in a minute") % {"count": format_number(most_in_a_minute(account.message_ids))}


def _describe_groups(
    groups: Iterable[SimilarTexts], messages: Iterable[Message], shown: AbstractSet[int]
) -> Iterator[SimilarLine]:
    """Yield texts that are alike. shown: the accounts that the page lists."""
    by_text = {message.content: message for message in messages}
    for group in groups:
        account_ids = _join_ids(group.author_ids) if group.author_ids <= shown else ""
        yield SimilarLine(group, [by_text[text] for text in group.texts[:MAX_VARIANTS]], account_ids)


def _count_minutes(review: RaidReview, spared: Collection[int], *, end_ms: int) -> RaidChart:
    times: dict[bool, list[int]] = {True: [], False: []}
    for message in review.recent.messages:
        times[message.author_id in spared].append(ms_of(message.message_id))
    end_ms = max(end_ms, review.start_ms + 1)
    return count_minutes(times[False], times[True], start_ms=review.start_ms, end_ms=end_ms)


def _chart_end_ms(review: RaidReview, selected: Iterable[int]) -> int:
    """Return the end that was chosen; without one, a time shortly after the newest message of the raid, or now.

    selected: the newest messages of the accounts that are selected, which the chart has too.
    """
    if review.end_ms is not None:
        return review.end_ms
    if not review.assessment.count:
        return review.now_ms
    last_ms = minute_of(ms_of(max((review.assessment.last_id, *selected)))) + MINUTE_MS
    return min(last_ms + max(MIN_REST_MS, round((last_ms - review.start_ms) * REST_SHARE)), review.now_ms)


def _draw_times(chart: RaidChart, review: RaidReview, *, end_ms: int) -> RaidTimes:
    width = round(100 / len(chart.bars), 3)
    bars = []
    for number, bar in enumerate(chart.bars):
        if not bar.raid + bar.other:
            continue
        time = _format_times(bar.start_ms, bar.start_ms + chart.minutes * MINUTE_MS, review)
        counts = Counter({DeletionStatus.TO_DELETE: bar.raid, DeletionStatus.KEPT: bar.other})
        bars.append(
            TimeBar(
                time=time,
                count=counts.total(),
                counts=[counts[status] for status in _LABELS],
                title=f"{time}: {describe_counts(counts, count_messages(counts.total()), _LABELS)}",
                url="",
                x=round(number * 100 / len(chart.bars), 3),
                width=width,
                parts=stack_parts(counts, most=chart.most, height=CHART_HEIGHT),
            )
        )
    row = ChannelTimes(review.channel, bars, sum(bar.count for bar in bars))
    first, last = _format_moment(chart.bars[0].start_ms, review), _format_end(end_ms, review)
    return RaidTimes([row], list(_LABELS.items()), first, last)


def _list_moments(chart: RaidChart, review: RaidReview, *, end_ms: int) -> str:
    """Return the borders of the bars as JSON, for the slider: the value of each as in `Moment`, and its label."""
    starts = [(str(bar.start_ms // MINUTE_MS), _format_moment(bar.start_ms, review)) for bar in chart.bars]
    end, label = "" if review.end_ms is None else str(review.end_ms // MINUTE_MS), _format_end(end_ms, review)
    if review.end_ms is None and end_ms < review.now_ms:
        label = gettext("%(time)s, until now") % {"time": label}
    return json.dumps([*starts, (end, label)])


# --- Time ranges ------------------------------------------------------------------------


def _offer_starts(review: RaidReview) -> Iterator[Moment]:
    begin = review.raid_start_ms
    offered = {begin - minutes * MINUTE_MS for minutes in EARLIER_MINUTES}
    offered |= {begin + minutes * MINUTE_MS for minutes in LATER_MINUTES}
    for at in sorted({at for at in offered if at < review.now_ms} | {begin, review.start_ms}):
        group = _group_of(at, begin) if review.assessment.count else ""
        yield Moment(str(at // MINUTE_MS), _format_moment(at, review), at == review.start_ms, group)


def _group_of(at: int, begin: int) -> str:
    # As headings, since the closed list of a phone has no room for more than the time.
    if at == begin:
        return gettext("Detected start")
    return gettext("Earlier") if at < begin else gettext("Later")


def _offer_ends(review: RaidReview) -> Iterator[Moment]:
    yield Moment("", gettext("now"), review.end_ms is None)
    ends = set() if review.end_ms is None else {review.end_ms}
    if review.assessment.count:
        last = minute_of(ms_of(review.assessment.last_id)) + MINUTE_MS
        ends |= {at for at in (last - minutes * MINUTE_MS for minutes in (0, *LATER_MINUTES)) if at > review.start_ms}
    for at in sorted(ends, reverse=True):
        yield Moment(str(at // MINUTE_MS), _format_moment(at, review), at == review.end_ms)


def _format_times(start_ms: int, end_ms: int, review: RaidReview) -> str:
    times = {"start": _format_moment(start_ms, review), "end": _format_moment(end_ms, review)}
    return gettext("%(start)s to %(end)s") % times


def _format_end(end_ms: int, review: RaidReview) -> str:
    """Return the end of the chart: "now", or as `_format_moment`."""
    is_now = review.end_ms is None and end_ms == review.now_ms
    return gettext("now") if is_now else _format_moment(end_ms, review)


def _format_moment(ms: int, review: RaidReview) -> str:
    """Return hours and minutes, with the day if it is not today: "23:49", "25 Nov, 23:49"."""
    time, now = map(time_at, (ms, review.now_ms))
    is_today = timezone.localtime(time).date() == timezone.localtime(now).date()
    if is_today:
        return format_clock(time)
    day = format_axis_day(timezone.localtime(time).date())
    return gettext("%(day)s, %(time)s") % {"day": day, "time": format_clock(time)}
