"""The suite: folders like the code, on real servers."""
