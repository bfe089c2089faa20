"""Display names that several staff accounts have."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Count, F, Value
from django.db.models.functions import Coalesce, Concat, NullIf, Trim

from chatstore.models.users import User
from moderation.operations.access.visibility import name_of

_FULL_NAME = Trim(Concat("first_name", Value(" "), "last_name"))


def shared_names(accounts: Iterable[User]) -> set[str]:
    """Return those display names of some accounts that other accounts have too, in one statement."""
    shown = {name_of(account) for account in accounts}
    if not shown:
        return set()
    # As `name_of` returns them.
    named = User.objects.annotate(shown=Coalesce(NullIf(_FULL_NAME, Value("")), F("username"))).filter(shown__in=shown)
    return set(
        named.order_by().values("shown").annotate(count=Count("pk")).filter(count__gt=1).values_list("shown", flat=True)
    )
