"""`make bench`: every speed figure as a ratio to a reference timed in the same run."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = (("noise.py",), ("streaming.py",), ("card_page.py",), ("startup.py", "--size"))


def main():
    for script, *arguments in SCRIPTS:
        print(f"== {script} {' '.join(arguments)}", flush=True)
        subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)


if __name__ == "__main__":
    main()
