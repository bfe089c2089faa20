"""Fixtures shared by the moderation tests."""

import pytest

from chatstore.models import Channel
from tests.moderation.channels import make_channel


@pytest.fixture
def channel() -> Channel:
    """An empty channel, unique to the test."""
    return make_channel()
