"""The field of models for texts that pages translate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from chatstore.domain.texts import as_stored, from_stored

if TYPE_CHECKING:
    _TextField = models.TextField[str, str]
else:
    _TextField = models.TextField


class TemplateTextField(_TextField):
    """Stores a `chatstore.domain.texts.Text` as template and parameters; any other string as it is."""

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, _path, args, kwargs = super().deconstruct()
        # A text column to Postgres and to migrations.
        return name, "django.db.models.TextField", list(args), dict(kwargs)

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        return None if value is None else from_stored(value)

    def get_prep_value(self, value: Any) -> Any:
        # The prepared value of an expression is the expression.
        return as_stored(value) if isinstance(value, str) else super().get_prep_value(value)
