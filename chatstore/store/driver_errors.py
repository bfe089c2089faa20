"""Translation of the driver's errors into ours, whose class determines whether to retry."""

from __future__ import annotations

import cassandra as driver
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import ErrorMessage

from chatstore.domain.errors import StoreUnavailable, TooManyTombstones
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy

TOMBSTONE_FAILURE = 1
"""READ_TOO_MANY_TOMBSTONES in the native protocol's failure map."""


class DeadlinePassed(StoreUnavailable):
    """The caller's own time limit passed before the response arrived."""


def translate_error(error: BaseException) -> BaseException:
    """Return our error for one of the driver's; other errors, and those of invalid statements, unchanged."""
    if isinstance(error, NoHostAvailable):
        causes = error.errors.values() if isinstance(error.errors, dict) else ()
        driver_errors = [cause for cause in causes if isinstance(cause, driver.DriverException)]
        return translate_error(driver_errors[0]) if driver_errors else StoreUnavailable(_("No Cassandra node answers."))
    if isinstance(error, driver.ReadFailure) and TOMBSTONE_FAILURE in (error.error_code_map or {}).values():
        return TooManyTombstones(_("Cassandra aborted a read: too many tombstones in its interval."))
    if isinstance(error, driver.OperationTimedOut):
        return DeadlinePassed(_("Cassandra did not answer in time."))
    reason = _find_reason(error)
    return error if reason is None else StoreUnavailable(reason)


def is_refusal(error: BaseException) -> bool:
    """Return whether the driver or the nodes rejected a statement or its values, so that a retry would fail again."""
    return isinstance(error, driver.DriverException)


def _find_reason(error: BaseException) -> str | None:
    """Return why the store is unavailable; None if the error does not mean that it is."""
    if isinstance(error, driver.RequestValidationException):
        return None
    if isinstance(error, driver.Unavailable):
        return ngettext_lazy(
            "%(up)s of %(count)s required Cassandra replica is up.",
            "%(up)s of %(count)s required Cassandra replicas are up.",
            error.required_replicas,
            up=error.alive_replicas,
        )
    if isinstance(error, driver.Timeout):
        return _("A Cassandra replica did not answer in time.")
    if isinstance(error, driver.CoordinationFailure):
        return _("A Cassandra replica failed to process a request.")
    if isinstance(error, (driver.DriverException, ConnectionException, ErrorMessage, OSError)):
        return _("Cassandra is unavailable: %(error)s.", error=type(error).__name__)
    return None
