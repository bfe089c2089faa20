"""Reports of the demonstration: of the raid, of the spam in several channels, and of one message that is harmless."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from chatstore.demo.plan import DemoChannel, DemoPlan
from chatstore.domain.messages import Message
from chatstore.domain.reports import ReportCategory

RAID_REPORTS = (7, 4, 2, 1)
"""Reports of each reported message of the raid."""

_ABOUT_RAID = ("", "", "there are dozens of these", "please stop the wave 🌊", "mods, #general is unreadable")
_ABOUT_SPAM = ("", "the same link is in every channel", "got this as a direct message too")
_ABOUT_TALK = ("this is off topic, again",)


@dataclass(frozen=True, slots=True)
class DemoReport:
    """A member's report of a message."""

    message: Message
    reporter_id: int
    category: ReportCategory
    text: str


def make_reports(plan: DemoPlan, channel: DemoChannel, messages: Sequence[Message]) -> list[DemoReport]:
    """Return the reports of messages of a channel, the same for the same plan; none for most channels."""
    rng = random.Random(f"reports {plan.seed} {channel.channel_id}")
    by_author = {author.user_id for author in plan.raiders} | {plan.spammer.user_id}
    unwanted = [message for message in messages if message.author_id in by_author]
    if (channel.guild, channel.name) == (0, "general"):
        chosen = rng.sample(unwanted, min(len(unwanted), len(RAID_REPORTS)))
        return [
            report
            for message, count in zip(chosen, RAID_REPORTS, strict=False)
            for report in _report(plan, message, rng, _ABOUT_RAID, count=count)
        ]
    if channel.name in ("show-your-loaf", "recipes", "code-corner"):
        return [report for message in unwanted[-1:] for report in _report(plan, message, rng, _ABOUT_SPAM, count=2)]
    if channel.name == "electronics":
        return _report(plan, messages[-1], rng, _ABOUT_TALK, count=1, category=ReportCategory.OTHER)
    return []


def _report(
    plan: DemoPlan,
    message: Message,
    rng: random.Random,
    texts: Sequence[str],
    *,
    count: int,
    category: ReportCategory = ReportCategory.SPAM,
) -> list[DemoReport]:
    reporters = rng.sample([person for person in plan.people if person.user_id != message.author_id], count)
    return [DemoReport(message, reporter.user_id, category, rng.choice(texts)) for reporter in reporters]
