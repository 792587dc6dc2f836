"""How each project wants to be asked: formatter, form of a pull request, rules."""

from __future__ import annotations

from dataclasses import dataclass

_OPENTSNE_FORM = """\
##### Issue
{issue}

##### Description of changes
{text}

##### Includes
- [X] Code changes
- [X] Tests
- [{documentation}] Documentation
"""

_SKLEARN_FORM = """\
#### Reference Issues/PRs
{issue}

#### What does this implement/fix? Explain your changes.
(in your own words)

#### Introduce yourself
(in your own words)

#### AI usage disclosure
(keep the lines that apply to you, delete the rest)
I used AI assistance for:
- Code generation (e.g., when writing an implementation or fixing a bug)
- Test/benchmark generation
- Documentation (including examples)
- Research and understanding

#### Any other comments?
"""


@dataclass(frozen=True)
class Manners:
    """What one project expects of a pull request."""

    repository: str
    form: str
    guide: str
    formatter: tuple[str, ...] = ()
    no_issue: str = ""  # what the form says where there is none
    own_words: bool = False  # the description has to be written by the sender
    rules: tuple[str, ...] = ()


MANNERS = {
    "umap-learn": Manners(
        repository="lmcinnes/umap",
        form="{issue}\n\n{text}\n",
        guide="CONTRIBUTING.md",
        formatter=("black", "--quiet"),
        rules=("The number of a known issue belongs in the message.",),
    ),
    "openTSNE": Manners(
        repository="pavlin-policar/openTSNE",
        form=_OPENTSNE_FORM,
        guide=".github/PULL_REQUEST_TEMPLATE.md",
        no_issue="None found.",
    ),
    "pynndescent": Manners(
        repository="lmcinnes/pynndescent",
        form="{issue}\n\n{text}\n",
        guide="CONTRIBUTING.md",
        formatter=("black", "--quiet"),
    ),
    "scikit-learn": Manners(
        repository="scikit-learn/scikit-learn",
        form=_SKLEARN_FORM,
        guide="doc/developers/contributing.rst",
        formatter=("ruff", "format", "--quiet"),
        own_words=True,
        rules=(
            "An issue comes first, and a maintainer has to triage it: no pull request while it "
            'is labelled "Needs Triage".',
            "Issue, description and comments are written by you. Do not paste the text of this "
            "folder, nor text that a program has written; PRs that do are closed unread.",
            "Read and test every line of the change, so that you can explain it when asked.",
            'Fill in "Introduce yourself" and "AI usage disclosure" truthfully.',
            "Results change for the same data and parameters: after opening, add "
            "doc/whats_new/upcoming_changes/changed-models/<number>.fix.rst.",
            "Two core developers have to approve.",
        ),
    ),
}
