"""One peer, one table, in the peer's own environment and in its own documented use.

    PEER/bin/python adapters.py METHOD TRAIN.csv PUBLIC.json OUT.csv EPSILON DELTA

PUBLIC.json holds what everybody is given: label, bounds, categories, whole-number columns. The whole
budget is EPSILON for every method: peers that charge preprocessing on top get the rest for their model.
Only pandas, numpy and the peer are imported. Wrappers must not change how a peer draws its rows.
"""

import json
import math
import os
import sys
import tempfile
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

BINS = 16  # for peers that want numbers in bins and let the user choose
METHODS = {}


def method(function):
    METHODS[function.__name__] = function
    return function


def edges(public, name):
    low, high = public["bounds"][name]
    return np.linspace(low, high, BINS + 1)


def zcdp_of(epsilon, delta):
    """The largest rho whose zCDP gives (epsilon, delta), by Canonne, Kamath and Steinke's conversion."""

    def delta_of(rho):
        def at(alpha):
            power = (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha)
            return power - math.log(alpha - 1)

        low, high = 1.01, (epsilon + 1) / (2 * rho) + 2
        for _ in range(200):  # the logarithm is convex in alpha
            third = (high - low) / 3
            low, high = (
                (low, high - third) if at(low + third) < at(high - third) else (low + third, high)
            )
        return math.exp(at(low))

    return bisected(delta_of, delta, epsilon)


def mu_of(epsilon, delta):
    """The largest mean of a Gaussian of deviation 1 that gives (epsilon, delta): exact (Balle, Wang)."""

    def delta_of(mu):
        def upper(x):
            return math.erfc(x / math.sqrt(2)) / 2

        return upper(epsilon / mu - mu / 2) - math.exp(epsilon) * upper(epsilon / mu + mu / 2)

    return bisected(delta_of, delta, epsilon)


def bisected(delta_of, delta, most):
    """The largest x up to `most` with delta_of(x) <= delta, from below."""
    low, high = 1e-9, most
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) <= delta else (low, middle)
    return low


# smartnoise-synth: bins with public bounds, so that no budget goes to finding them
def smartnoise(kind, frame, public, epsilon, *, nullable=False, **extra):
    from snsynth import Synthesizer
    from snsynth.transform import BinTransformer, LabelTransformer, TableTransformer

    parts = [
        BinTransformer(
            bins=BINS, lower=public["bounds"][c][0], upper=public["bounds"][c][1], nullable=nullable
        )
        if c in public["bounds"]
        else LabelTransformer(nullable=nullable)
        for c in frame
    ]
    model = Synthesizer.create(kind, epsilon=epsilon, **extra)
    model.fit(frame, transformer=TableTransformer(parts), preprocessor_eps=0.0)
    return pd.DataFrame(model.sample(len(frame)), columns=frame.columns)


@method
def smartnoise_mst(frame, public, epsilon, delta):
    return smartnoise("mst", frame, public, epsilon, delta=delta)


@method
def smartnoise_aim(frame, public, epsilon, delta):
    return smartnoise("aim", frame, public, epsilon, delta=delta)


@method
def smartnoise_pacsynth(frame, public, epsilon, delta):
    """It leaves cells empty where combinations are rare: hence the nullable columns."""
    return smartnoise("pacsynth", frame, public, epsilon, nullable=True, delta=delta)


# dpmm: epsilon of the model plus proc_epsilon for its bins is the whole
def dpmm(kind, frame, public, epsilon, delta):
    import dpmm.pipelines

    domain, typed = {}, frame.copy()
    for name in frame:
        if name in public["bounds"]:
            domain[name] = dict(zip(("lower", "upper"), public["bounds"][name], strict=True))
        else:
            typed[name] = pd.Categorical(typed[name], categories=public["categories"][name])
            domain[name] = {"categories": public["categories"][name]}
    share = 0.1 * epsilon
    model = getattr(dpmm.pipelines, kind)(
        epsilon=epsilon - share, delta=delta, proc_epsilon=share, n_jobs=1
    )
    model.fit(typed, domain)
    return model.generate(n_records=len(frame))


@method
def dpmm_mst(frame, public, epsilon, delta):
    return dpmm("MSTPipeline", frame, public, epsilon, delta)


@method
def dpmm_aim(frame, public, epsilon, delta):
    return dpmm("AIMPipeline", frame, public, epsilon, delta)


@method
def dpmm_privbayes(frame, public, epsilon, delta):
    return dpmm("PrivBayesPipeline", frame, public, epsilon, delta)


@method
def datasynthesizer_privbayes(frame, public, epsilon, _delta):
    """Correlated attribute mode with k = 2 parents, as in its notebooks; pure epsilon.

    It is told types, ranges and codes, and gets fresh seeds: its own are 0. Codes that look like numbers
    or dates would be taken for such, so each gets a letter in front.
    """
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    codes, whole = public["categories"], public["integers"]
    typed = frame.assign(**{c: "c" + frame[c] for c in codes})
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        source, domain, description = (folder / n for n in ("in.csv", "domain.json", "description.json"))
        typed.to_csv(source, index=False)
        domain.write_text(json.dumps({c: ["c" + code for code in codes[c]] for c in codes}))
        describer = DataDescriber(category_threshold=max(50, *map(len, codes.values())))
        describer.describe_dataset_in_correlated_attribute_mode(
            str(source), epsilon=epsilon, k=2, seed=fresh_seed(),
            attribute_to_datatype={
                c: "String" if c in codes else "Integer" if c in whole else "Float" for c in frame
            },
            attribute_to_is_categorical={c: c in codes for c in frame},
            attribute_to_is_candidate_key=dict.fromkeys(frame, False),
            numerical_attribute_ranges={c: list(limits) for c, limits in public["bounds"].items()},
            categorical_attribute_domain_file=str(domain),
        )  # fmt: skip
        describer.save_dataset_description_to_file(str(description))
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(
            len(frame), str(description), seed=fresh_seed()
        )
        drawn = generator.synthetic_dataset
    return drawn.assign(**{c: drawn[c].astype(str).str[1:] for c in codes})


def fresh_seed():
    return int.from_bytes(os.urandom(4), "big")


# OpenDP: contingency tables with public keys and cuts, zCDP from (epsilon, delta)
def opendp(kind, frame, public, epsilon, delta, *, steps):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    rho = zcdp_of(epsilon, delta)
    while steps and not parts_fit(rho, steps):
        rho *= 1 - 1e-7
    typed = frame.astype(dict.fromkeys(public["bounds"], float))  # cuts are floats
    context = dp.Context.compositor(
        data=pl.from_dict({c: typed[c].tolist() for c in frame}).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
        margins=[dp.polars.Margin(max_length=1_000_000)],
    )
    cuts = {name: [float(edge) for edge in edges(public, name)] for name in public["bounds"]}
    table = context.query(rho=rho).contingency_table(
        keys=dict(public["categories"]), cuts=cuts, algorithm=getattr(dp.mbi, kind)()
    )
    drawn = table.release().synthesize(rows=len(frame))
    return pd.DataFrame({c: drawn[c].to_list() for c in frame})


def parts_fit(rho, steps):
    """Whether the parts of MST's budget add up to no more than the whole, in floats rounded up.

    By opendp 0.16 they may be a last bit more, and then it refuses its own query after its first fit
    (opendp issue 2789). The parts follow from rho and the number of choices alone.
    """

    def below(x):
        return float(np.nextafter(x, -np.inf))

    tables = below(below(rho - rho * 0.5))
    choices = below(below(tables - tables * 0.9))
    each, total = below(choices / steps), 0.0
    for _ in range(steps):
        exact = Fraction(total) + Fraction(each)
        total += each
        total = total if Fraction(total) >= exact else float(np.nextafter(total, np.inf))
    return total <= choices


@method
def opendp_mst(frame, public, epsilon, delta):
    return opendp("MST", frame, public, epsilon, delta, steps=frame.shape[1] - 1)


@method
def opendp_aim(frame, public, epsilon, delta):
    return opendp("AIM", frame, public, epsilon, delta, steps=0)


@method
def mbi_pairs(frame, public, epsilon, delta):
    """mbi has no mechanism on the index: noisy label x column tables and its own estimation.

    All tables together are one Gaussian: a row is in one cell of each.
    """
    from mbi import Domain, LinearMeasurement, estimation

    label, rng = public["label"], np.random.default_rng()
    codes, sizes = {}, {}
    for name in frame:
        if name in public["bounds"]:
            cut = np.searchsorted(edges(public, name)[1:-1], frame[name].to_numpy(float), side="right")
            codes[name], sizes[name] = cut, BINS
        else:
            levels = public["categories"][name]
            codes[name] = pd.Categorical(frame[name], categories=levels).codes
            sizes[name] = len(levels)
    others = [name for name in frame if name != label]
    sigma, measured = math.sqrt(len(others)) / mu_of(epsilon, delta), []
    for name in others:
        grid = [np.arange(sizes[label] + 1), np.arange(sizes[name] + 1)]
        exact = np.histogram2d(codes[label], codes[name], bins=grid)[0]
        noisy = (exact + rng.normal(0, sigma, exact.shape)).ravel()
        measured.append(LinearMeasurement(noisy, (label, name), stddev=sigma))
    domain = Domain(list(frame), [sizes[name] for name in frame])
    fitted = estimation.MirrorDescent().estimate(domain, measured)
    drawn = fitted.synthetic_data(rows=len(frame))
    held = drawn.to_dict() if hasattr(drawn, "to_dict") else drawn.df
    out = {}
    for name in frame:
        code = np.asarray(held[name], int)
        if name in public["bounds"]:
            low, high = public["bounds"][name]
            out[name] = low + (code + rng.random(len(code))) / BINS * (high - low)
        else:
            out[name] = np.asarray(public["categories"][name], object)[code]
    return pd.DataFrame(out)


@method
def diffprivlib_pca(frame, public, epsilon, _delta):
    """PCA with half of the budget, a Gaussian per class in 8 directions with the rest; numbers only."""
    import diffprivlib.models as models
    import diffprivlib.tools as tools
    from diffprivlib.models.utils import covariance_eig

    names, label, k = list(public["bounds"]), public["label"], 8
    lows, highs = np.array([public["bounds"][name] for name in names]).T
    x = 2 * (frame[names].to_numpy(float) - lows) / (highs - lows) - 1
    norm = float(np.sqrt(len(names)))
    pca = models.PCA(
        n_components=min(k, len(names)), epsilon=epsilon / 2, data_norm=norm, bounds=(-1, 1)
    ).fit(x)
    z, rng, parts = pca.transform(x), np.random.default_rng(), []
    for level in public["categories"][label]:
        own = z[(frame[label] == level).to_numpy()]
        mean = np.array([
            tools.mean(own[:, j], epsilon=epsilon / 4 / z.shape[1], bounds=(-norm, norm))
            for j in range(z.shape[1])
        ])  # fmt: skip
        centred = own - mean
        centred *= np.minimum(1, norm / np.maximum(np.linalg.norm(centred, axis=1), 1e-9))[:, None]
        values, vectors = covariance_eig(centred, epsilon=epsilon / 4, norm=norm)
        spread = np.sqrt(np.maximum(values, 0) / max(len(own), 1))
        drawn = mean + (rng.standard_normal((len(own), len(spread))) * spread) @ np.real(vectors).T
        back = np.clip(pca.inverse_transform(drawn), -1, 1)
        part = pd.DataFrame((back + 1) / 2 * (highs - lows) + lows, columns=names)
        part[label] = level
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


@method
def sdv_gaussian_copula(frame, public, _epsilon, _delta):
    """Not private: the favourite of those who need no guarantee."""
    from sdv.metadata import Metadata
    from sdv.single_table import GaussianCopulaSynthesizer

    one_table = hasattr(Metadata, "detect_from_dataframe")
    found = (
        Metadata.detect_from_dataframe(frame)
        if one_table
        else Metadata.detect_from_dataframes({"t": frame})
    )
    where = {} if one_table else {"table_name": "t"}
    for name in public["categories"]:
        found.update_column(column_name=name, sdtype="categorical", **where)
    model = GaussianCopulaSynthesizer(found)
    model.fit(frame if one_table else {"t": frame})
    drawn = model.sample(len(frame))
    return drawn["t"] if isinstance(drawn, dict) else drawn


def main(name, source, public_path, out, epsilon, delta):
    warnings.filterwarnings("ignore")
    public = json.loads(Path(public_path).read_text(encoding="utf-8"))
    texts = dict.fromkeys(public["categories"], str)
    frame = pd.read_csv(source, dtype=texts, keep_default_na=False, na_values={})
    drawn = METHODS[name](frame, public, float(epsilon), float(delta))
    drawn[list(frame.columns)].to_csv(out, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
