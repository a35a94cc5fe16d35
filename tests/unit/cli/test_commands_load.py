"""What needs no ledger loads no database."""

import subprocess
import sys

import pytest

from adumbra.schema.schema import Schema
from support.release import example_release

ASKED = {
    "plan": ["plan", "--schema", "{schema}", "--epsilon", "1"],
    "data": [
        "plan",
        "--schema",
        "{schema}",
        "--epsilon",
        "1",
        "--data",
        "{data}",
        "--method",
        "answers",
    ],
    "compare": ["plan", "--schema", "{schema}", "--epsilon", "0.5,1", "--compare", "--json"],
}


def assert_no_database(words):
    code = (
        "import sys\nfrom adumbra.cli.main import main\n"
        f"sys.argv = ['adumbra', *{words!r}]\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "print('sqlalchemy' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.split() == ["False"], done.stderr


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_plan_loads_no_database(asked, tmp_path):
    schema, data = tmp_path / "schema.toml", tmp_path / "rows.csv"
    schema.write_text(Schema.numeric(12, 0.0, 1.0, rows=3).to_toml(), encoding="utf-8")
    lines = [",".join(f"x{j}" for j in range(12)), *[",".join(["0.5"] * 12)] * 3]
    data.write_text("\n".join(lines), encoding="utf-8")
    assert_no_database([word.format(schema=schema, data=data) for word in asked])


@pytest.mark.parametrize("command", ["verify", "inspect"])
def test_a_recipient_loads_no_database(command, tmp_path):
    (tmp_path / "release").mkdir()
    example_release(tmp_path / "release")
    assert_no_database([command, str(tmp_path / "release")])


def test_a_release_imports_its_own_method_and_what_comes_before_its_rows(tmp_path):
    """And scipy and jinja2, which are needed later: a broken one is refused before the charge."""
    code = (
        "import sys, numpy as np, adumbra as ad\n"
        "from adumbra.privacy.ledger import memory_ledger\n"
        "ledger = memory_ledger()\n"
        "ledger.register(ad.Population('p', ad.Unit.ROW, ad.Neighbours.REPLACE_ONE, 9.0, 1e-3))\n"
        "given = dict(schema=ad.Schema.numeric(3, 0.0, 1.0), ledger=ledger, population='p')\n"
        f"config, out = ad.MomentsConfig(epsilon=1.0), {str(tmp_path / 'r')!r}\n"
        "ad.prepare(np.zeros((9, 3)), config, out=out, **given)\n"
        "others = [f'adumbra.mechanisms.{one}.plan' for one in ('topk', 'projection', 'ron_gauss')]\n"
        "late = ['adumbra.report', 'adumbra.answers', *others]\n"
        "print([name for name in late if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
