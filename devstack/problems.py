"""What stops a local stack: told to people as one line."""


class Problem(Exception):
    """Something that the person at the keyboard can put right; its text is shown as it is."""
