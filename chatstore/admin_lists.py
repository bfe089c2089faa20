"""Lists of the admin over tables of millions of rows: paged by key, newest first, without counting."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django import forms
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import ForeignKey, Model, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models.names import NamedQuerySet, find_by_name
from chatstore.models.users import User
from chatstore.operations.rights import scope_for

NO_VALUE = "–"
"""What is shown for nothing, also where Unfold would show a hyphen: as the value of a method on the page of a row."""

BEFORE = "before"
"""Query parameter: the last ID of the page before, exclusive."""

MAX_COUNTED = 10_000
"""Rows up to which those of a table are counted, in some milliseconds; statistics of small tables are far off."""

ROWS_PER_PAGE = 50
"""Unfold renders a row in half a millisecond."""


class KeysetPages:
    """The pages of a list as Unfold's template needs them. older: URL of the next page, or "".

    count: number of all rows of a list of one page, and of a small table; None for others. estimate: number of all
    rows, from Postgres's statistics; None for a part of them, and if they are counted. more_than: the number up to
    which they were counted, if there are more although the statistics say less.
    """

    template_name = "admin/keyset_pagination.html"

    def __init__(
        self, *, older: str, is_first: bool, count: int | None, estimate: int | None, more_than: int | None
    ) -> None:
        self.older = older
        self.is_first = is_first
        self.count = count
        self.estimate = estimate
        self.more_than = more_than


class KeysetChangeList(ChangeList):  # type: ignore[misc]
    """A page of rows in the order of their keys, the highest first."""

    def get_filters_params(self, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the parameters of the filters, without that of the page."""
        # A link of a filter leads to its first page.
        self.filter_params.pop(BEFORE, None)
        found: dict[str, Any] = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name != BEFORE}

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str]:
        """Return the order by key: any other would need all rows."""
        return ["-pk"]

    def get_results(self, request: HttpRequest) -> None:
        """Read one row more than the page has, instead of counting all."""
        found = list(self.queryset[: ROWS_PER_PAGE + 1])
        self.result_list = found[:ROWS_PER_PAGE]
        self.model_admin.add_facts(self.result_list)
        # Equal, so that Unfold shows neither "100 results" nor "Show all" in the heading.
        self.result_count = self.full_result_count = len(self.result_list)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = bool(found)
        is_more = len(found) > ROWS_PER_PAGE
        is_first = BEFORE not in request.GET
        is_all = not (self.query or self.has_active_filters)
        count = len(found) if is_first and not is_more else None
        estimate = estimate_rows(self.model) if is_more and is_all else None
        if estimate is not None and estimate < MAX_COUNTED:
            count, estimate = count_rows(self.model), None
        self.paginator = KeysetPages(
            older=self.get_query_string({BEFORE: str(self.result_list[-1].pk)}) if is_more else "",
            is_first=is_first,
            count=count,
            estimate=estimate,
            more_than=MAX_COUNTED if is_more and is_all and count is None and estimate is None else None,
        )


class SnowflakeChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A choice by ID. Invalid IDs are rejected and not shown again, since the widget would query Postgres for them."""

    def prepare_value(self, value: Any) -> Any:
        """Return the selected ID; None for an invalid one."""
        try:
            return parse_snowflake(super().prepare_value(value))
        except BadInput:
            return None


class PrivateHistory:
    """Mixin of a `ModelAdmin`, before it: who may not view a history does not learn whether there is one."""

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> Any:
        """Show the history. Django's own looks for the object first. Raises `PermissionDenied`."""
        if not self.has_view_or_change_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        return super().history_view(request, object_id, extra_context)  # type: ignore[misc]


class KeysetAdmin(PrivateHistory, ModelAdmin):  # type: ignore[misc]
    """Admin of a large table. Its list cannot be sorted by columns."""

    sortable_by = ()
    show_full_result_count = False
    list_per_page = ROWS_PER_PAGE

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Model | None:
        """Return the row. An empty `_to_field` means none: Django looks for a field without a name."""
        found: Model | None = super().get_object(request, object_id, from_field or None)
        self.add_facts([] if found is None else [found])
        return found

    def add_facts(self, rows: Sequence[Any]) -> None:
        """Add what the rows of a page, or the one that is opened, show beside their columns."""

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField[Any] | None:
        """Return a field that accepts any input from a URL or a form."""
        field: forms.ModelChoiceField[Any] | None = super().formfield_for_foreignkey(
            db_field, request, form_class=SnowflakeChoice, **kwargs
        )
        return field

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether the account may view everything: a list has the rows of all guilds."""
        return self._may_everywhere(request, "view") or self._may_everywhere(request, "change")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return whether the account may add rows for every guild."""
        return self._may_everywhere(request, "add")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether the account may change the rows of every guild."""
        return self._may_everywhere(request, "change")

    def _may_everywhere(self, request: HttpRequest, action: str) -> bool:
        right = f"{self.opts.app_label}.{get_permission_codename(action, self.opts)}"
        return isinstance(request.user, User) and scope_for(request.user, right).is_everything

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """Return the class of the list."""
        return KeysetChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows of this page and of those after it. An invalid key is ignored."""
        rows: QuerySet[Any] = super().get_queryset(request)
        try:
            return rows.filter(pk__lt=parse_snowflake(request.GET[BEFORE])) if BEFORE in request.GET else rows
        except BadInput:
            return rows


def search_columns(rows: QuerySet[Any], conditions: Sequence[dict[str, Any]]) -> QuerySet[Any]:
    """Return the first rows that meet any of the conditions: of a page, by key.

    Each condition is a query of its own, with an index of its own: for "or" Postgres may read the whole table.
    """
    keys: set[int] = set()
    for condition in conditions:
        keys.update(rows.filter(**condition).order_by("-pk").values_list("pk", flat=True)[: ROWS_PER_PAGE + 1])
    return rows.filter(pk__in=keys)


def search_names(rows: NamedQuerySet[Any], text: str) -> QuerySet[Any]:
    """Return the first rows with an ID or a name."""
    keys = [row.pk for row in find_by_name(rows, text, limit=ROWS_PER_PAGE)]
    with suppress(BadInput):
        keys.append(parse_snowflake(text))
    return rows.filter(pk__in=keys)


def count_rows(model: type[Model]) -> int | None:
    """Return how many rows a table has; None if there are more than `MAX_COUNTED`, which Postgres does not read."""
    count: int = model._base_manager.order_by()[: MAX_COUNTED + 1].count()
    return None if count > MAX_COUNTED else count


def estimate_rows(model: type[Model]) -> int:
    """Return about how many rows a table has, as of its last ANALYZE."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table])
        return max(0, int(cursor.fetchone()[0]))
