"""A new method is its package and its entry in the list: nothing else names methods.

A private mean is written into a copy of the tree. `plan`, `release`, `verify`, `methods` and the
reference page must all know it.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.warm import COMMAND, Parent

ROOT = Path(__file__).resolve().parents[2]

CONFIG = '''
"""The public parameters of a private mean."""

from dataclasses import dataclass

from adumbra.mechanisms import fields
from adumbra.mechanisms.fields import option, settle_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanConfig:
    """Public parameters, all of them."""

    epsilon: float = option(fields.EPSILON)
    delta: float = option(fields.DELTA, default=1e-6)
    scale: float = option("Factor of the released mean.", default=1.0)

    def __post_init__(self) -> None:
        settle_fields(self)
'''
PLAN = '''
"""What a private mean costs."""

from dataclasses import dataclass

from adumbra.data.encode import Encoder
from adumbra.mechanisms.base import Calibrated, Noise, Plan, Settled, calibrate_gaussian
from adumbra.mechanisms.mean.config import MeanConfig
from adumbra.numerics import sqrt_upper
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.guarantee import promise
from adumbra.schema.schema import Schema
from adumbra.statistics.moments import RowSum


@dataclass(frozen=True, slots=True)
class Parts:
    """The statistic and its noise."""

    encoder: Encoder
    statistic: RowSum
    noise: Calibrated


def settle(config: MeanConfig, schema: Schema) -> Settled[MeanConfig, Parts]:
    """Every public decision."""
    encoder = Encoder(schema)
    statistic = RowSum(width=encoder.width)
    noise = calibrate_gaussian(
        statistic.sensitivity(schema.neighbours).l2,
        mu_of(config.epsilon, config.delta),
        exponent=statistic.exponent,
        rounding=sqrt_upper(encoder.width),
        largest=float(schema.row_limit),
    )
    entry = Noise(
        purpose="mean",
        distribution="gaussian",
        scale=noise.scale,
        sensitivity=noise.sensitivity,
        grid=2.0**noise.exponent,
    )
    planned = Plan(
        method="mean",
        guarantee=promise(config.epsilon, config.delta, schema.unit, schema.neighbours),
        purposes=("mean",),
        noise=(entry,),
    )
    parts = Parts(encoder, statistic, noise)
    return Settled(config=config, schema=schema, plan=planned, parts=parts)
'''
RELEASE = '''
"""The mean of bounded rows, with noise."""

import pyarrow as pa

from adumbra.data.bounds import bound_rows
from adumbra.mechanisms.base import Draft
from adumbra.numerics import coarsen
from adumbra.privacy.noise import add_gaussian


def draw(settled, source, engine, grant):
    """Sum, add noise once, divide by the public number of rows."""
    parts = settled.parts
    norm = parts.encoder.norm_upper()

    def prepare(batch):
        return bound_rows(parts.encoder.encode(batch), norm)

    exact = engine.fold(source, prepare, parts.statistic, stage="sum")
    noisy = add_gaussian(coarsen(exact, parts.noise.exponent), parts.noise.scale, grant.key("mean"))
    mean = noisy.to_float().reshape(-1) * norm * settled.config.scale / settled.schema.rows
    return Draft(tables={"data": pa.table({"column": list(parts.encoder.names), "mean": mean})})
'''
PACKAGE = '''
"""A private mean."""

from adumbra.mechanisms.method import Method, Steps
from adumbra.mechanisms.mean.config import MeanConfig


def _steps():
    from adumbra.mechanisms.mean import plan, release

    return Steps(settle=plan.settle, draw=release.draw)


MEAN = Method(
    name="mean",
    config=MeanConfig,
    steps=_steps,
    purpose="the mean of every column",
    data="tables",
    neighbours="replace-one",
)
'''
SCHEMA = """format = "adumbra-schema/1"

[table]
unit = "row"
neighbours = "replace-one"

[[groups]]
match = "x{0..3}"
kind = "number"
lower = 0.0
upper = 1.0
"""


def with_mean(folder):
    """A copy of the source tree with one package more, and its entry in the list."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs/reference").mkdir(parents=True)
    package = folder / "src/adumbra/mechanisms/mean"
    package.mkdir()
    files = {"__init__": PACKAGE, "config": CONFIG, "plan": PLAN, "release": RELEASE}
    for name, text in files.items():
        (package / f"{name}.py").write_text(text.lstrip(), encoding="utf-8")
    listed = folder / "src/adumbra/mechanisms/methods.py"
    before = listed.read_text(encoding="utf-8")
    after = before.replace(
        "from adumbra.mechanisms.moments import MOMENTS\n",
        "from adumbra.mechanisms.mean import MEAN\nfrom adumbra.mechanisms.moments import MOMENTS\n",
    ).replace("LDA, MOMENTS,", "LDA, MEAN, MOMENTS,")
    assert len(after) - len(before) == len("from adumbra.mechanisms.mean import MEAN\n") + len("MEAN, ")
    listed.write_text(after, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": str(folder / "src")}


def test_a_new_method_is_its_package_and_one_entry(tmp_path):
    environment = with_mean(tmp_path)

    def run(*words):
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def adumbra(*words):
        with Path(os.devnull).open() as nothing:
            done = home.run([str(COMMAND), *map(str, words)], tmp_path, nothing.fileno())
        assert done.returncode == 0, done.stderr
        return done.stdout

    home = Parent(tmp_path / "src")  # a process that has loaded the copy, and forks for each command
    rows = np.random.default_rng(0).uniform(0.2, 0.6, (4000, 4))
    pq.write_table(pa.table({f"x{i}": rows[:, i] for i in range(4)}), tmp_path / "d.parquet")
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    asked = ("--schema", "s.toml", "--method", "mean", "--epsilon", "1", "-o", "scale=2")
    assert json.loads(adumbra("plan", *asked, "--json"))["method"] == "mean"
    adumbra("ledger", "init", "l.db")
    people = ("--unit", "row", "--neighbours", "replace-one", "--epsilon", "2")
    adumbra("ledger", "register", "p", "--ledger", "l.db", *people)
    paid = ("--ledger", "l.db", "--population", "p", "--out", "r", "--yes")
    adumbra("release", "d.parquet", *asked, *paid)
    adumbra("verify", "r")
    released = pq.read_table(tmp_path / "r/data/data.parquet")["mean"].to_numpy()
    centred = 2 * (rows.mean(axis=0) - 0.5)
    assert np.abs(released - centred).max() < 0.05  # the noise has a standard deviation near 0.003
    options = json.loads(adumbra("methods", "--json"))["mean"]["options"]
    assert ["scale", "a number", "1.0", "Factor of the released mean."] in options
    home.close()
    run("tools/cli_reference.py")
    page = (tmp_path / "docs/reference/methods.md").read_text(encoding="utf-8")
    assert "## mean" in page
    assert "| `scale` | a number | 1.0 | Factor of the released mean. |" in page
