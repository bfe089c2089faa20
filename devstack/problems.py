"""The error that stops a local stack, shown to users as one line."""


class Problem(Exception):
    """An error that the user can fix; its text is shown as it is."""
