"""Commands of `manage.py`. Each parses its arguments, calls one operation, and prints the result."""
