"""Before a release: links of the README that work on PyPI, and the project's URLs.

    python release/links.py OWNER/NAME TAG

The repository has relative links, so that they work wherever it is. PyPI shows the README alone, so
this rewrites README.md and pyproject.toml in place. The release workflow calls it; nothing of it
is committed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def absolute(readme: str, repository: str, tag: str) -> str:
    """A README whose pictures and links lead to a tag of a GitHub repository."""

    def replaced(link: re.Match) -> str:
        target = link["target"]
        if "://" in target or target.startswith("#"):
            return link[0]
        place = f"https://github.com/{repository}/blob/{tag}/{target}"
        if link["picture"]:
            place = f"https://raw.githubusercontent.com/{repository}/{tag}/{target}"
        return f"{link['picture']}[{link['text']}]({place})"

    return LINK.sub(replaced, readme)


def with_urls(settings: str, repository: str) -> str:
    """pyproject.toml with the places of source, pages, issues and changelog."""
    owner, name = repository.split("/")
    home = f"https://github.com/{repository}"
    lines = [
        f'Source = "{home}"',
        f'Documentation = "https://{owner.lower()}.github.io/{name}/"',
        f'Issues = "{home}/issues"',
        f'Changelog = "{home}/blob/main/CHANGELOG.md"',
    ]
    heading = "[project.urls]\n"
    if settings.count(heading) != 1:
        raise ValueError("pyproject.toml must have one section [project.urls]")
    return settings.replace(heading, heading + "\n".join(lines) + "\n")


def main(repository: str, tag: str) -> None:
    readme, settings = ROOT / "README.md", ROOT / "pyproject.toml"
    readme.write_text(absolute(readme.read_text("utf-8"), repository, tag), "utf-8")
    settings.write_text(with_urls(settings.read_text("utf-8"), repository), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
