"""Errors that cross layers. The class indicates whether a retry can help."""


class ChatstoreError(Exception):
    """Base of all errors that this project raises on purpose, with a message for people.

    `str()` of it is English, for logs and commands. Pages and Postgres get `text`, which can be translated.
    """

    @property
    def text(self) -> str:
        """The message, as it was raised: a `chatstore.domain.texts.Text` unless it is an internal error."""
        return self.args[0] if self.args and isinstance(self.args[0], str) else str(self)


class StoreUnavailable(ChatstoreError):
    """The store cannot answer or execute the request at present. A later retry may help; nothing is lost."""


class NodeUnreachable(StoreUnavailable):
    """One node did not answer; the text names it."""


class TooManyTombstones(ChatstoreError):
    """A read was aborted because it scanned too many tombstones. Retry with a smaller interval."""


class WriteRefused(ChatstoreError):
    """A write was not attempted (clock too far off, unknown columns …). Nothing was written."""


class BadInput(ChatstoreError):
    """Input from a user is invalid; the text gives the reason. A retry with the same input fails again."""


class NotFound(BadInput):
    """The named object does not exist, or the user may not see it: from outside both look alike."""


class Forbidden(ChatstoreError):
    """The actor lacks the permission for the operation."""


class ConfirmationNeeded(ChatstoreError):
    """The user has to confirm first that it is them; then the same request can succeed."""
