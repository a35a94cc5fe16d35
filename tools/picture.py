"""A page as a PNG, by headless Chromium: `python tools/picture.py PAGE.html PICTURE.png`."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTH, HEIGHT = 1000, 1980


def main(page: str, picture: str) -> None:
    """Open the page without a network and save what a reader sees first."""
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    if browser is None:
        sys.exit("chromium is not installed: install it, or leave the picture as it is")
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}"]
        command += [f"--screenshot={Path(picture).resolve()}", Path(page).resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(f"{picture}: {Path(picture).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
