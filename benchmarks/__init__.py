"""What this package is worth as it changes: quality, directed data, speed, size.

``python -m benchmarks`` lists the scripts; their results are in RESULTS.md. The experiments of the
paper, with their own methods and results, are in `benchmarks.paper`, and use `benchmarks.data`,
`benchmarks.peers` and the ledger of this folder. Nothing here uses `benchmarks.paper`.
"""
