"""`python -m deltafold`: the `deltafold` command where no script is installed."""

import sys

from deltafold.cli import main

sys.exit(main())
