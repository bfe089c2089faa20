"""Detection of raids: several accounts, most of them new, that flood a channel together.

No single sign makes a raid. A busy evening of old members is no raid however many messages it has, and
neither is one new member who posts links. An account takes part if its signs add up; a raid needs several such
accounts, and as many messages of theirs in a minute as a lively conversation has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS, MINUTE_MS, YEAR_MS
from chatstore.domain.snowflakes import ms_of
from moderation.domain.first_seen import FirstSeen
from moderation.domain.similarity import group_texts

PAUSE_MS = 10 * MINUTE_MS
"""A raid begins after the last pause of this length: what its accounts wrote before is shown, but not counted."""

TAKES_PART = 3
"""Points of an account that takes part."""

_LINK = re.compile(r"https?://\S|discord\.gg/", re.IGNORECASE)
_EVERYONE = re.compile(r"@(?:everyone|here)\b")


class Sign(StrEnum):
    """Why an account may take part in a raid."""

    YOUNG = "young"
    FIRST_SEEN = "first_seen"
    SAME_TEXT = "same_text"
    MENTIONS = "mentions"
    LINKS = "links"
    FLOOD = "flood"


SUSPICIOUS_TEXT = 2
"""Points, beside one for each sign, of an account that posts a suspicious text. Who is not new takes part only if such
texts are half of its messages: the account was probably taken over. Members may copy a joke, link to a stream, be quick
or quote the raid.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a guild considers unusual.

    messages_per_minute, accounts: the least that a raid has. times_usual: how many times the usual rate of a channel
    is unusual. account_days, first_seen_hours: accounts and authors that are younger are new. same_text_accounts: how
    many accounts write the same text. account_messages: how many messages of one account in a minute are a flood;
    people who type need ten seconds or more for each. mentions: how many users an account mentions; `@everyone` and
    `@here` count as many. links: how many of its messages have a link; one suffices if others wrote the same text.
    """

    messages_per_minute: int = 20
    times_usual: int = 5
    accounts: int = 4
    account_days: int = 7
    first_seen_hours: int = 24
    same_text_accounts: int = 3
    account_messages: int = 6
    mentions: int = 5
    links: int = 3

    def is_unusual(self, rate: float, *, usual: float) -> bool:
        """Return whether a number of messages per minute is unusual in a channel."""
        return rate >= max(self.messages_per_minute, self.times_usual * usual)


@dataclass(frozen=True, slots=True)
class Account:
    """An account with its messages in the time that was read, ascending. signs: in the order of `Sign`.

    first_seen: when it posted for the first time, as far as it is known; None: nothing is. is_established: it posted
    for the first time more than a year ago.
    """

    author_id: int
    message_ids: Sequence[int]
    signs: Sequence[Sign]
    takes_part: bool
    first_seen: FirstSeen | None
    is_established: bool


@dataclass(frozen=True, slots=True)
class SimilarTexts:
    """Texts of several accounts that are alike. texts: the most frequent first. count: of messages.

    is_suspicious: most of the accounts are new, or twice as many accounts as needed post a link or mention everyone.
    """

    texts: Sequence[str]
    count: int
    author_ids: AbstractSet[int]
    is_suspicious: bool


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the messages of a channel tell. accounts: those that take part first, then by number of messages.

    first_id, last_id: of the messages of those that take part, after the last long pause; 0 without any. count:
    the number of these.
    """

    accounts: Sequence[Account]
    similar: Sequence[SimilarTexts]
    is_raid: bool
    first_id: int
    last_id: int
    count: int

    @property
    def participants(self) -> Sequence[Account]:
        """The accounts that take part."""
        return [account for account in self.accounts if account.takes_part]

    @property
    def seconds(self) -> int:
        """Time from the first message of the raid to the last."""
        return (ms_of(self.last_id) - ms_of(self.first_id)) // 1000 if self.count else 0


def assess_messages(
    messages: Iterable[Message],
    *,
    first_seen: Mapping[int, FirstSeen],
    bots: AbstractSet[int],
    limits: Limits,
    now_ms: int,
) -> Assessment:
    """Assess recent messages of one channel, in any order.

    first_seen: when each author posted for the first time, in any channel; no entry: not known. Who may be new counts
    as new. Bots and webhooks are no accounts of people, and never take part.
    """
    written: dict[int, list[Message]] = {}
    for message in sorted(messages, key=lambda message: message.message_id):
        written.setdefault(message.author_id, []).append(message)
    people = {
        author_id: own
        for author_id, own in written.items()
        if author_id not in bots and all(message.webhook_id is None for message in own)
    }
    new = {author_id: _signs_of_age(author_id, first_seen, limits, now_ms=now_ms) for author_id in people}
    similar = _find_similar(people, {author_id for author_id, signs in new.items() if signs}, limits)
    accounts = [
        _assess_account(
            author_id, own, new.get(author_id), similar, limits, seen=first_seen.get(author_id), now_ms=now_ms
        )
        for author_id, own in written.items()
    ]
    accounts.sort(key=lambda account: (not account.takes_part, -len(account.message_ids), account.author_id))
    return _conclude(accounts, similar, limits)


def _signs_of_age(author_id: int, first_seen: Mapping[int, FirstSeen], limits: Limits, *, now_ms: int) -> list[Sign]:
    signs = []
    if ms_of(author_id) > now_ms - limits.account_days * DAY_MS:
        signs.append(Sign.YOUNG)
    if author_id in first_seen and first_seen[author_id].latest > now_ms - limits.first_seen_hours * HOUR_MS:
        signs.append(Sign.FIRST_SEEN)
    return signs


def _find_similar(people: Mapping[int, Sequence[Message]], new: AbstractSet[int], limits: Limits) -> list[SimilarTexts]:
    """Return the texts that enough accounts wrote, the most frequent first."""
    authors: dict[str, dict[int, int]] = {}
    for author_id, own in people.items():
        for message in own:
            counts = authors.setdefault(message.content, {})
            counts[author_id] = counts.get(author_id, 0) + 1
    similar = []
    for texts in group_texts(message.content for own in people.values() for message in own):
        by = {author_id for text in texts for author_id in authors[text]}
        if len(by) >= limits.same_text_accounts:
            count = sum(sum(authors[text].values()) for text in texts)
            is_loud = len(by) >= 2 * limits.same_text_accounts and any(_is_loud(text) for text in texts)
            similar.append(SimilarTexts(texts, count, by, is_loud or 2 * len(by & new) >= len(by)))
    return sorted(similar, key=lambda group: -group.count)


def _assess_account(
    author_id: int,
    own: Sequence[Message],
    signs_of_age: Sequence[Sign] | None,
    similar: Sequence[SimilarTexts],
    limits: Limits,
    *,
    seen: FirstSeen | None,
    now_ms: int,
) -> Account:
    """Return the account. signs_of_age: None for a bot."""
    ids = [message.message_id for message in own]
    is_established = seen is not None and seen.latest < now_ms - YEAR_MS
    if signs_of_age is None:
        return Account(author_id, ids, (), takes_part=False, first_seen=seen, is_established=is_established)
    groups = [group for group in similar if author_id in group.author_ids]
    found = {*signs_of_age, *_signs_of_behavior(own, groups, limits)}
    is_suspicious = any(group.is_suspicious for group in groups)
    points = len(found) + SUSPICIOUS_TEXT * is_suspicious
    takes_part = points >= TAKES_PART and (bool(signs_of_age) or _is_mostly_suspicious(own, groups))
    signs = [sign for sign in Sign if sign in found]
    return Account(author_id, ids, signs, takes_part=takes_part, first_seen=seen, is_established=is_established)


def _signs_of_behavior(own: Sequence[Message], groups: Sequence[SimilarTexts], limits: Limits) -> set[Sign]:
    found = set()
    if groups:
        found.add(Sign.SAME_TEXT)
    mentioned = {user for message in own for user in message.mentions}
    if len(mentioned) >= limits.mentions or any(_EVERYONE.search(message.content) for message in own):
        found.add(Sign.MENTIONS)
    links = sum(_LINK.search(message.content) is not None for message in own)
    if links >= (1 if groups else limits.links):
        found.add(Sign.LINKS)
    if most_in_a_minute([message.message_id for message in own]) >= limits.account_messages:
        found.add(Sign.FLOOD)
    return found


def _is_mostly_suspicious(own: Sequence[Message], groups: Sequence[SimilarTexts]) -> bool:
    texts = {text for group in groups if group.is_suspicious for text in group.texts}
    return 2 * sum(message.content in texts for message in own) >= len(own)


def _is_loud(text: str) -> bool:
    return _LINK.search(text) is not None or _EVERYONE.search(text) is not None


def most_in_a_minute(ids: Sequence[int]) -> int:
    """Return the largest number of messages within any 60 seconds; ids ascending."""
    most = start = 0
    for end, message_id in enumerate(ids):
        while ms_of(message_id) - ms_of(ids[start]) >= MINUTE_MS:
            start += 1
        most = max(most, end - start + 1)
    return most


def _conclude(accounts: Sequence[Account], similar: Sequence[SimilarTexts], limits: Limits) -> Assessment:
    taking_part = [account for account in accounts if account.takes_part]
    ids = sorted(message_id for account in taking_part for message_id in account.message_ids)
    burst = _after_last_pause(ids)
    is_raid = len(taking_part) >= limits.accounts and most_in_a_minute(burst) >= limits.messages_per_minute
    first, last = (burst[0], burst[-1]) if burst else (0, 0)
    return Assessment(accounts, similar, is_raid, first, last, len(burst))


def _after_last_pause(ids: Sequence[int]) -> Sequence[int]:
    """Return the ids after the last long pause; ids ascending."""
    for place in range(len(ids) - 1, 0, -1):
        if ms_of(ids[place]) - ms_of(ids[place - 1]) >= PAUSE_MS:
            return ids[place:]
    return ids
