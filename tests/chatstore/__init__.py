"""Tests of the message store, in folders like its code."""
