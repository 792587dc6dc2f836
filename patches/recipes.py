"""How each upstream project is built from a patched source tree.

A recipe turns a source tree into a folder from which the package can be imported
and in which its tests can be run. Everything happens in temporary folders.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from . import source
from .catalogue import CheckError, Patch, Release
from .workbench import Workbench

_SMOKE_UMAP = """\
import warnings; warnings.simplefilter("ignore")
import numpy as np, umap
X = np.random.RandomState(0).normal(size=(150, 5)).astype(np.float32)
model = umap.UMAP(n_epochs=20, random_state=0).fit(X[:100])
assert model.transform(X[100:120]).shape == (20, 2)
model.update(X[120:])
assert model.embedding_.shape == (130, 2) and np.isfinite(model.embedding_).all()
"""

_BUILD_SKLEARN = """\
import sys, numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
openmp = {"win32": ["/openmp"], "darwin": []}.get(sys.platform, ["-fopenmp"])
extensions = [
    Extension(
        name.removesuffix(".pyx").replace("/", "."), [name],
        include_dirs=[numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_9_API_VERSION")],
        extra_compile_args=openmp, extra_link_args=openmp,
    )
    for name in sys.argv[1:]
]
directives = dict(
    language_level=3, boundscheck=False, wraparound=False, initializedcheck=False,
    nonecheck=False, cdivision=True,
)
setup(
    ext_modules=cythonize(extensions, compiler_directives=directives),
    script_args=["build_ext", "--inplace"],
)
"""


_COMPILED = (".pyx", ".pxd")
_BUILT = (".so", ".pyd")


class Recipe:
    """Build trees of one release: untouched, with the new tests, patched."""

    requirements: tuple[str, ...] = ()
    checkout: tuple[str, ...] = ()  # what a clone must have checked out to run the tests
    upstream_tests: tuple[str, ...] = ()  # folders or files
    compiled = False

    def __init__(self, release: Release, bench: Workbench, full: bool = False):
        self.release = release
        self.bench = bench
        self.full = full
        self.folder = bench.folder / release.folder.name
        self.folder.mkdir()
        if self.compiled and not any(map(shutil.which, ("cc", "gcc", "clang", "cl"))):
            raise CheckError(f"{release.project} needs a C compiler, and none was found")
        bench.install(*(line.format(version=release.version) for line in self.requirements))
        self.root = source.fetch(release, bench.python, self.folder)
        self.base = self.prepare()

    def prepare(self) -> Path:
        """Build the untouched release."""
        return self.root

    def build(self, name: str, patches: list[Patch], tests_only: bool = False) -> Path:
        """Copy the untouched build, apply patches (or only their tests), rebuild."""
        tree = source.copy(self.base, self.folder / name)
        for patch in patches:
            if not source.applies(patch, tree, only=patch.tests if tests_only else None):
                raise CheckError(f"{patch.name} does not apply to {self.release.folder.name}")
        touched = sorted({file for patch in patches for file in patch.touched})
        if not tests_only:
            self.rebuild(tree, touched)
        return tree

    def rebuild(self, tree: Path, touched: list[str]) -> None:
        """Rebuild what the touched files need."""

    def tree_of(self, clone: Path, touched: list[str]) -> Path:
        """A folder in which the tests of a clone can be run; ``touched`` may be compiled."""
        return clone

    def upstream_files(self) -> list[str]:
        """The upstream test files, relative to the root."""
        found = []
        for name in self.upstream_tests:
            place = self.base / name
            found += sorted(place.glob("test_*.py")) if place.is_dir() else [place]
        return [str(file.relative_to(self.base)) for file in found]

    def smoke(self, tree: Path) -> str:
        """A last look at the patched package; what was seen, or nothing."""
        return ""

    def _must_run(self, *arguments: str | Path, cwd: Path) -> None:
        done = self.bench.run(*arguments, cwd=cwd)
        if done.returncode != 0:
            raise CheckError(f"building {self.release.project} failed:\n{done.stderr[-2000:]}")


class UMAPLearn(Recipe):
    """Pure Python. The source package ships no tests, so a smoke run stands in."""

    requirements = (
        "numpy",
        "scipy",
        "scikit-learn",
        "numba",
        "pynndescent",
        "tqdm",
        "pytest",
        "setuptools",
        "wheel",
    )
    checkout = ("umap/",)

    def smoke(self, tree: Path) -> str:
        packing = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
        self._must_run(*packing, "--wheel-dir", self.folder / "wheel", tree, cwd=tree)
        done = self.bench.run("-c", _SMOKE_UMAP, path=tree)
        if done.returncode != 0:
            raise CheckError(f"the smoke run of umap-learn failed:\n{done.stderr[-2000:]}")
        return "builds; smoke run of fit, transform, update passed"


class OpenTSNE(Recipe):
    """Compiled in place once; again only for a patch that touches compiled sources."""

    requirements = ("numpy", "scipy", "scikit-learn", "cython", "setuptools", "wheel", "pytest")
    checkout = ("openTSNE/", "tests/")
    upstream_tests = ("tests",)
    compiled = True

    def prepare(self) -> Path:
        # the source package leaves this file out, and test modules import each other
        (self.root / "tests" / "__init__.py").touch()
        self._compile(self.root)
        return self.root

    def rebuild(self, tree: Path, touched: list[str]) -> None:
        if any(Path(file).suffix in (*_COMPILED, ".c", ".cpp", ".h") for file in touched):
            self._compile(tree)

    def tree_of(self, clone: Path, touched: list[str]) -> Path:
        """The clone with the compiled modules of the release, if their sources are the same."""
        package = self.base / "openTSNE"
        for built in [file for file in package.rglob("*") if file.suffix in _BUILT]:
            place = built.relative_to(self.base)
            for suffix in _COMPILED:
                name = place.with_name(place.name.split(".")[0] + suffix)
                ours, theirs = self.root / name, clone / name
                if theirs.exists() and ours.read_bytes() != theirs.read_bytes():
                    raise CheckError(
                        f"{name} is not the one of {self.release.folder.name}, so its compiled "
                        "module cannot be used. Move the patches to the next release first."
                    )
            shutil.copy(built, clone / place)
        return clone

    def _compile(self, tree: Path) -> None:
        self._must_run("setup.py", "build_ext", "--inplace", cwd=tree)


class ScikitLearn(Recipe):
    """The installed wheel with the touched files and extensions replaced.

    With ``full`` the patched source package is built as a whole instead.
    """

    requirements = (
        "scikit-learn=={version}",
        "cython>=3.1.2,<3.2.6",
        "setuptools",
        "wheel",
        "pytest",
    )
    upstream_tests = ("sklearn/manifold/tests",)
    compiled = True

    def prepare(self) -> Path:
        done = self.bench.run("-c", "import sklearn; print(sklearn.__path__[0])")
        installed = Path(done.stdout.strip())
        site = self.folder / "site"
        source.copy(installed, site / "sklearn")
        for libraries in installed.parent.glob("scikit_learn.libs"):
            source.copy(libraries, site / libraries.name)
        for file in sorted({file for patch in self.release.patches for file in patch.touched}):
            if (site / file).exists() and (site / file).read_bytes() != (
                self.root / file
            ).read_bytes():
                raise CheckError(f"{file} differs between the wheel and the source package")
        return site

    def tree_of(self, clone: Path, touched: list[str]) -> Path:
        """The installed release with the files that patches touch from the clone."""
        tree = source.copy(self.base, self.folder / f"site-{clone.name}")
        for file in sorted({file for patch in self.release.patches for file in patch.touched}):
            if (clone / file).exists():
                (tree / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(clone / file, tree / file)
        self.rebuild(tree, touched)
        return tree

    def rebuild(self, tree: Path, touched: list[str]) -> None:
        if self.full:
            self._build_all(tree)
            return
        extensions = [file for file in touched if file.endswith(".pyx")]
        if extensions:
            self._must_run("-c", _BUILD_SKLEARN, *extensions, cwd=tree)

    def _build_all(self, tree: Path) -> None:
        """Build the patched source package as a whole into ``tree``."""
        patched = source.copy(self.root, self.folder / f"{tree.name}-source")
        for patch in self.release.patches:
            source.applies(patch, patched)
        shutil.rmtree(tree)
        build = ("-m", "pip", "install", "--quiet", "--no-deps", "--target", tree, patched)
        self._must_run(*build, cwd=self.folder)


class PyNNDescent(Recipe):
    """Pure Python, with its tests in the package.

    Of those, the files that build an index are run. The others test distances, ranks and
    search graphs, which the patch does not touch, and compile for minutes.
    """

    requirements = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "llvmlite", "pytest")
    checkout = ("pynndescent/",)
    upstream_tests = (
        "pynndescent/tests/test_pynndescent_.py",
        "pynndescent/tests/test_hub_trees.py",
        "pynndescent/tests/test_hub_search_tree.py",
    )


RECIPES: dict[str, type[Recipe]] = {
    "umap-learn": UMAPLearn,
    "openTSNE": OpenTSNE,
    "scikit-learn": ScikitLearn,
    "pynndescent": PyNNDescent,
}
