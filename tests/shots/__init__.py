"""Opens every page in a real browser, keeps a picture of each, and fails on what a person would trip over.

`python -m tests.shots` (or `make shots`); the pictures lie in `.local/shots`.
"""
