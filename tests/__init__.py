"""Test suite. The folders mirror those of the code; most tests run on real servers."""
