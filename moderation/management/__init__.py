"""Commands of `manage.py`: each parses, calls one operation, answers."""
