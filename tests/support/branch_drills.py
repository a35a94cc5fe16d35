"""What is recorded to see that every branch is right: the claims, the replayed kinds, and drills.

A drill is a kind of release with options that lead into a branch which no claim's case needs.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from adumbra.audit.cases import all_cases
from adumbra.audit.checks import check_replay, transcripts
from adumbra.audit.pairs import Case
from adumbra.audit.recorder import Transcript, exceedances, record_pair
from adumbra.audit.replay_kinds import Kind, kinds, neighbours

EPSILON = 8.0
FEW = (0, 4)  # the transcripts of kinds: likely noise, and much wider noise


def drills() -> list[Kind]:
    """Further releases, each for a branch."""
    made = {kind.name: kind for kind in kinds()}

    def like(name: str, words: str, **options: object) -> Kind:
        """A kind with other options; None takes one away."""
        kind = made[name]
        changed = {key: value for key, value in {**kind.options, **options}.items() if value is not None}
        return replace(kind, name=f"{name}/{words}", options=changed)

    plain = replace(made["moments-tables/replace-one"].schema, label=None)
    unlabelled = replace(like("moments-tables/replace-one", "no label"), schema=plain)
    schema = made["lda/add-remove-person"].schema
    spec = schema.person
    nobody = schema if spec is None else replace(schema, person=replace(spec, no_person="one-person"))
    bought = made["bounds/replace-one"].schema
    columns = tuple(replace(one, private=one.name == "a") for one in bought.columns)
    return [
        replace(like("bounds/replace-one", "one column"), schema=replace(bought, columns=columns)),
        like("answers/replace-one", "one category", columns=("c",)),
        like("pca/rows", "shrunk", shrink=True),
        like("pca/pure/rows", "shrunk", shrink=True),
        like("pca/rows", "mean", n_components=0),
        like("ron-gauss/replace-one", "unit rows", unit_rows=True),
        like("topk-frefirst/replace-one", "all counts", all_counts=True),
        like("topk-frefirst/replace-one", "one length", length=2, max_length=None),
        like("topk-tps-pfm/replace-one", "one length", length=2, max_length=None),
        like("topk-frefirst/replace-one", "auto", algorithm=None, max_length=None),
        like("topk-gumbel-gaussian/replace-one", "auto", algorithm=None),
        like("lda/replace-one", "as many rows", synthetic_rows=None),
        like("lda/add-remove", "as many rows", synthetic_rows=None),
        replace(like("lda/add-remove-person", "one person"), schema=nobody),
        like("moments-tables/replace-one", "no tables", epsilon=1.0),
        like("moments-tables/replace-one", "scores", numbers="scores"),
        unlabelled,
    ]


def recorded_cases(
    folder: Path, wanted: Callable[[str], bool]
) -> Iterator[tuple[Case, tuple[Transcript, ...]]]:
    """Each case whose name is wanted, with the noise that it is recorded under."""
    chosen = transcripts()
    for case in all_cases(EPSILON):
        if wanted(case.name):
            yield case, chosen
    for number, kind in enumerate([*kinds(), *drills()]):
        name = f"kind {kind.name}"
        if not wanted(name):
            continue
        first, second, _ = next(iter(neighbours(kind, 1)))
        tables = (
            _file(kind, folder / f"{number}", first),
            _file(kind, folder / f"{number}-after", second),
        )
        case = Case(
            name=name, config=kind.config(), schema=kind.schema, tables=(tables,), is_worst=False
        )
        yield case, tuple(chosen[at] for at in FEW)


def _file(kind: Kind, folder: Path, data: bytes) -> Path:
    """Where the private rows lie."""
    folder.mkdir()
    kind.write(folder, data)
    return folder / kind.data_name


def faults(case: Case, chosen: tuple[Transcript, ...]) -> Iterator[str]:
    """What the recorder finds wrong with a case under some transcripts."""
    for transcript in chosen:
        recorded = record_pair(case, transcript)
        for fault in (*check_replay(recorded), *exceedances(recorded)):
            yield f"{case.name}: {fault} ({transcript})"
