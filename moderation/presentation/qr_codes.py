"""QR codes as SVG."""

from __future__ import annotations

import segno
from django.utils.safestring import SafeString, mark_safe


def draw_qr_code(text: str) -> SafeString:
    """Return the code as an SVG element with attributes only. It is dark on white in dark mode too, for cameras."""
    svg = segno.make(text, error="m", micro=False).svg_inline(border=3, dark="#000", light="#fff", omitsize=True)
    # Made of modules alone: the text is not part of it.
    return mark_safe(svg)  # noqa: S308
