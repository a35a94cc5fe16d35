"""`python -m adumbra` is the `adumbra` command."""

from adumbra.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
