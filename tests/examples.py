"""Examples per property: 100 without servers, 25 on real servers, 500 in the slow tier."""

import os

from hypothesis import settings

IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"

on_servers = settings(max_examples=500 if IS_THOROUGH else 25, deadline=None)
"""Settings of a property whose examples are read and written on real servers."""
