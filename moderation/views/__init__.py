"""The moderators' pages: parse, one operation, answer."""
