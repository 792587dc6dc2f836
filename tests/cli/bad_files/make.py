"""Makes the binary files of this folder; the text files are written by hand.

python tests/cli/bad_files/make.py
"""

import struct
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse

FOLDER = Path(__file__).parent


def sparse(name: str, array: str, place: int, value: int, shape=None) -> None:
    """A sparse matrix with one wrong index; written entry by entry, as scipy would check it."""
    good = scipy.sparse.random(12, 5, 0.6, format="csr", random_state=0)
    parts = {"indices": good.indices, "indptr": good.indptr, "data": good.data}
    parts[array] = parts[array].copy()
    parts[array][place] = value
    np.savez_compressed(FOLDER / name, format=b"csr", shape=shape or good.shape, **parts)


def main() -> None:
    sparse("negative_index.npz", "indices", 3, -5)
    sparse("large_index.npz", "indices", 3, 10**8)
    sparse("falling_indptr.npz", "indptr", 4, 10**6)
    sparse("short_shape.npz", "indices", 0, 0, shape=(30, 5))
    rng = np.random.default_rng(0)
    np.savez_compressed(FOLDER / "two_matrices.npz", first=np.ones((4, 2)), second=np.ones((4, 2)))
    np.savez_compressed(FOLDER / "words.npz", X=np.array([["a", "b"]] * 5))
    np.save(FOLDER / "vector.npy", rng.normal(size=9))
    np.save(FOLDER / "times.npy", np.arange(8).reshape(4, 2).astype("datetime64[D]"))
    whole = rng.normal(size=(6, 2)).tobytes()
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (600000, 2), }"
    header = header.ljust(117) + "\n"
    magic = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
    (FOLDER / "cut_off.npy").write_bytes(magic + header.encode() + whole)
    with zipfile.ZipFile(FOLDER / "not_arrays.npz", "w") as file:
        file.writestr("X.npy", b"no array")


if __name__ == "__main__":
    main()
