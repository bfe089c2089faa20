"""On Home the channels of each server are a fold of their own, also if two servers have the same name."""

import re

from chatstore.models import Channel, Guild
from moderation.operations.lookup.channels import ActiveChannel, Overview
from moderation.templatetags.chat import other_channels


def test_servers_of_the_same_name_are_kept_apart() -> None:
    guilds = [Guild(pk=pk, name=name) for pk, name in ((3, "Harbour"), (1, "Quarry"), (2, "Harbour"))]
    channels = [
        Channel(pk=10 + n, name=f"room-{n}", guild=guild) for n, guild in enumerate((*guilds, guilds[0], None, None))
    ]
    html = other_channels(Overview(others=[ActiveChannel(channel, None, None) for channel in channels]))
    folds = [
        (re.findall(r"<bdi[^>]*>([^<]*)<", summary)[0], re.findall(r"room-\d", listed))
        for summary, listed in re.findall(r"<summary>(.*?)</summary>(.*?)</details>", html, re.DOTALL)
    ]
    assert folds == [
        ("Direct messages", ["room-4", "room-5"]),
        ("Harbour", ["room-2"]),
        ("Harbour", ["room-0", "room-3"]),
        ("Quarry", ["room-1"]),
    ]
