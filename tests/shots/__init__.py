"""Open every page in a real browser, save a screenshot of each, and fail on visible faults.

`python -m tests.shots` (or `make shots`); the screenshots are in `.local/shots`.
"""
