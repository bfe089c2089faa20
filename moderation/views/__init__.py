"""Views of the moderators' pages. Each parses its input, calls one operation, and responds."""
