"""The ratios of the design, each side measured in the same run on the test servers.

`make bench [SIZE=200000] [OUT=bench.json]`. Medians of alternating runs at default settings.
"""
