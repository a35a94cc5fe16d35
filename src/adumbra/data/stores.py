"""Parquet files in an object store, by their address: `s3://bucket/visits`, `gs://...`, `memory://...`.

fsspec opens the store, with its own settings for who we are; Arrow reads the files as a dataset, in the
order of their names, on every pass. Other formats store no types, so they are copied here first.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from adumbra.data.opening import is_store
from adumbra.errors import InvalidInput, require

_SUFFIXES = (".parquet", ".pq")


def dataset_of(data: object) -> Any:  # noqa: ANN401  (the dataset of an address, else data itself)
    """The dataset at an address; data that is no address is given back."""
    return _opened(str(data)) if is_store(data) else data


def files_of(address: str, names: Sequence[str], schema: pa.Schema) -> ds.Dataset:
    """Some files below an address, in this order, as a dataset of these types: the share of a worker."""
    return _opened(address, names, schema)


def _opened(
    address: str, names: Sequence[str] | None = None, schema: pa.Schema | None = None
) -> ds.Dataset:
    """The Parquet files below an address; what a store says of a fault may hold a key: ours stands."""
    try:
        import fsspec  # noqa: PLC0415  (an extra)
    except ImportError:
        rule = "needs fsspec and the package of the store"
        raise InvalidInput(f"data: an address {rule}; pip install adumbra[stores]") from None
    kind, found, dataset = "", [], None
    try:
        system, path = fsspec.core.url_to_fs(address)
        found = _found(system, path) if names is None else list(names)
        if found and all(one.lower().endswith(_SUFFIXES) for one in found):
            wrapped = pafs.PyFileSystem(pafs.FSSpecHandler(system))
            dataset = ds.dataset(found, schema=schema, filesystem=wrapped, format="parquet")
    except (pa.ArrowException, Exception) as error:  # noqa: BLE001  (stores raise what they like)
        kind = type(error).__name__
    remedy = "check the address and what the store asks for"
    require(not kind, f"data: the store cannot be read ({kind}); {remedy}")
    rule = "the store holds other files than Parquet there" if found else "the store holds no file there"
    require(dataset is not None, f"data: {rule}; give Parquet files, or copy them here")
    return dataset


def _found(system: Any, path: str) -> list[str]:  # noqa: ANN401  (fsspec has no types)
    """The files at a path of a store, sorted."""
    listed = [path] if system.isfile(path) else sorted(system.find(path))
    return [one for one in listed if _is_visible(one, path)]


def _is_visible(path: str, folder: str) -> bool:
    """Whether no part of the path below the folder is hidden or a side file."""
    inner = Path(path.removeprefix(folder)).parts
    return not any(part.startswith((".", "_")) for part in inner)
