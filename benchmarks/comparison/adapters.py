"""One peer, one table, in the peer's own environment and in its own documented use.

    PEER/bin/python adapters.py METHOD TRAIN.csv PUBLIC.json OUT.csv EPSILON DELTA

PUBLIC.json holds what everybody is given: label, bounds, categories, whole-number columns. The whole
budget is EPSILON for every method: peers that charge preprocessing on top get the rest for their model.
Only pandas, numpy and the peer are imported. Wrappers must not change how a peer draws its rows.
"""

import json
import sys
import tempfile
import warnings
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


# smartnoise-synth: bins with public bounds, so that no budget goes to finding them
def smartnoise(kind, frame, public, epsilon, **extra):
    from snsynth import Synthesizer
    from snsynth.transform import BinTransformer, LabelTransformer, TableTransformer

    parts = [
        BinTransformer(bins=BINS, lower=public["bounds"][c][0], upper=public["bounds"][c][1])
        if c in public["bounds"]
        else LabelTransformer(nullable=False)
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
def smartnoise_pacsynth(frame, public, epsilon, _delta):
    return smartnoise("pacsynth", frame, public, epsilon)


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
    """Correlated attribute mode with k = 2 parents, as in its notebooks; pure epsilon."""
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    with tempfile.TemporaryDirectory() as folder:
        source, description = f"{folder}/in.csv", f"{folder}/description.json"
        frame.to_csv(source, index=False)
        describer = DataDescriber(category_threshold=50)
        describer.describe_dataset_in_correlated_attribute_mode(
            source, epsilon=epsilon, k=2,
            attribute_to_is_categorical={c: c not in public["bounds"] for c in frame},
            attribute_to_is_candidate_key=dict.fromkeys(frame, False),
        )  # fmt: skip
        describer.save_dataset_description_to_file(description)
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(len(frame), description)
        return generator.synthetic_dataset


# OpenDP: contingency tables with public keys and cuts, zCDP from (epsilon, delta)
def opendp(kind, frame, public, epsilon, delta):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    whole = float((np.sqrt(np.log(1 / delta) + epsilon) - np.sqrt(np.log(1 / delta))) ** 2)
    for attempt in range(20):  # its parts of the budget may add up to a last bit more than the whole
        try:
            return opendp_rows(dp, pl, kind, frame, public, whole * (1 - attempt / 1000))
        except Exception as error:
            if "insufficient budget for query" not in str(error) or attempt == 19:
                raise
    return None


def opendp_rows(dp, pl, kind, frame, public, rho):
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


@method
def opendp_mst(frame, public, epsilon, delta):
    return opendp("MST", frame, public, epsilon, delta)


@method
def opendp_aim(frame, public, epsilon, delta):
    return opendp("AIM", frame, public, epsilon, delta)


@method
def mbi_pairs(frame, public, epsilon, delta):
    """mbi has no mechanism on the index: noisy label x column tables and its own estimation."""
    from mbi import Domain, LinearMeasurement, estimation

    label, rng = public["label"], np.random.default_rng()
    rho = (np.sqrt(np.log(1 / delta) + epsilon) - np.sqrt(np.log(1 / delta))) ** 2
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
    sigma, measured = np.sqrt(len(others) / (2 * rho)), []
    for name in others:
        grid = [np.arange(sizes[label] + 1), np.arange(sizes[name] + 1)]
        exact = np.histogram2d(codes[label], codes[name], bins=grid)[0]
        noisy = (exact + rng.normal(0, sigma, exact.shape)).ravel()
        measured.append(LinearMeasurement(noisy, (label, name), stddev=sigma))
    domain = Domain(list(frame), [sizes[name] for name in frame])
    fitted = estimation.MirrorDescent().estimate(domain, measured, iters=500)
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
