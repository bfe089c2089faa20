"""How many examples a property is tried with: 100 where it needs no server, 25 on real ones, 500 in the slow tier."""

import os

from hypothesis import settings

IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"

on_servers = settings(max_examples=500 if IS_THOROUGH else 25, deadline=None)
"""For a property whose examples are read and written on real servers."""
