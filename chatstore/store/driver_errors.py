"""The driver's errors as ours: their class says whether to try again."""

from __future__ import annotations

import cassandra as driver
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import ErrorMessage

from chatstore.domain.errors import StoreUnavailable, TooManyTombstones

TOMBSTONE_FAILURE = 1
"""READ_TOO_MANY_TOMBSTONES in the native protocol's failure map."""


class DeadlinePassed(StoreUnavailable):
    """The caller's own time limit ended before an answer came."""


def translate_error(error: BaseException) -> BaseException:
    """Our error for one of the driver's; others, and wrong statements, as they are."""
    if isinstance(error, NoHostAvailable):
        causes = error.errors.values() if isinstance(error.errors, dict) else ()
        told = [cause for cause in causes if isinstance(cause, driver.DriverException)]
        return translate_error(told[0]) if told else StoreUnavailable("No Cassandra node answers.")
    if isinstance(error, driver.ReadFailure) and TOMBSTONE_FAILURE in (error.error_code_map or {}).values():
        return TooManyTombstones("Cassandra gave a read up: too many tombstones in its interval.")
    if isinstance(error, driver.OperationTimedOut):
        return DeadlinePassed("Cassandra did not answer in time.")
    reason = _find_reason(error)
    return error if reason is None else StoreUnavailable(reason)


def is_refusal(error: BaseException) -> bool:
    """Whether the driver or the nodes refused a statement or its values: trying again the same is no use."""
    return isinstance(error, driver.DriverException)


def _find_reason(error: BaseException) -> str | None:
    """Why the store can't be used, in words; None for an error that says no such thing."""
    if isinstance(error, driver.RequestValidationException):
        return None
    if isinstance(error, driver.Unavailable):
        return f"{error.alive_replicas} of the {error.required_replicas} Cassandra replicas that are needed are up."
    if isinstance(error, driver.Timeout):
        return "A Cassandra replica did not answer in time."
    if isinstance(error, driver.CoordinationFailure):
        return "A Cassandra replica failed at a request."
    if isinstance(error, (driver.DriverException, ConnectionException, ErrorMessage, OSError)):
        return f"Cassandra can't be used: {type(error).__name__}."
    return None
