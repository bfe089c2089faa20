"""The ratios of the design, each side measured in the same run on the test servers.

`make bench [SIZE=1000000] [OUT=bench.json] [ARGS=…]`. Medians of alternating runs at default settings.
"""
