"""Tests of the pages: with Django's client, and in a browser against a real server and worker."""
