"""Tests of the pages: by Django's client, and in a browser against a real server and worker."""
