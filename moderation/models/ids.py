"""The name by which migrations know `NextId`."""

from __future__ import annotations

from chatstore.models.ids import NextId

__all__ = ["NextId"]
