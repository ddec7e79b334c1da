"""`python -m toolglot`: the command line."""

import sys

from toolglot.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
