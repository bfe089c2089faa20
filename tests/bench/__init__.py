"""Benchmarks of the ratios set by the design. Both sides are measured in the same run on the test servers.

`make bench [SIZE=1000000] [OUT=bench.json] [ARGS=…]`. Figures are medians of alternating runs at default settings.
"""
