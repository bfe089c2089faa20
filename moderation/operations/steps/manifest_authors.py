"""Authors of a manifest as its summary lists them: of a large purge, the manifest itself has 50,000 rows."""

from __future__ import annotations

from collections.abc import Iterable

from moderation.models import ManifestSummary, Purge


def count_by_author(purge: Purge) -> dict[int, int] | None:
    """Return the number of messages by author in a frozen manifest; None if its summary does not list all of them."""
    stored = ManifestSummary.objects.filter(purge=purge).values_list("data__authors", "data__author_count").first()
    authors, count = stored or (None, None)
    return dict(authors) if authors is not None and len(authors) == count else None


def authors_by_purge(purge_ids: Iterable[int]) -> dict[int, set[int]]:
    """Return the authors of frozen manifests by purge id, without those whose summary does not list all of them."""
    stored = ManifestSummary.objects.filter(purge_id__in=list(purge_ids)).values_list(
        "purge_id", "data__authors", "data__author_count"
    )
    return {
        purge_id: {int(author) for author, _count in authors}
        for purge_id, authors, count in stored
        if authors is not None and len(authors) == count
    }
