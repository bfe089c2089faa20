"""The errors that cross storeys. Their class says whether trying again can help."""


class ChatstoreError(Exception):
    """Anything this project raises on purpose; `str()` of it may be shown to a person."""


class StoreUnavailable(ChatstoreError):
    """The store cannot say or do it now. Trying again later may help; nothing is lost."""


class NodeUnreachable(StoreUnavailable):
    """One node could not be asked; the text names it."""


class TooManyTombstones(ChatstoreError):
    """A read was aborted because it stepped over too many tombstones. Ask a smaller interval."""


class WriteRefused(ChatstoreError):
    """A write was not attempted (a clock too far off, unknown columns …). Nothing was written."""


class BadInput(ChatstoreError):
    """What a person gave cannot be used; the text says why. Trying again the same is no use."""


class NotFound(BadInput):
    """What a person named is not there, or not for them: from outside both look alike."""


class Forbidden(ChatstoreError):
    """The actor lacks the right for the operation."""
