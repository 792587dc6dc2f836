"""arXiv 2603.11396, run again and judged: its methods, its tables, its claims, one page.

``python -m benchmarks.paper`` lists the experiments, RESULTS.md is the page. The stored results are
those of one commit, `FROZEN_AT`: the package has changed since, so ``recheck`` compares on a
checkout of it. Whoever runs everything again, on purpose, does so in a folder of its own
(``reproduce``) and names the new commit here.
"""

from pathlib import Path

__all__ = ["FROZEN_AT", "RESULTS"]

FROZEN_AT = "9a2de03"
RESULTS = Path(__file__).parent / "results"
