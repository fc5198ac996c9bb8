"""`python -m herdgate`: the command `herdgate`; see `herdgate.cli`."""

from herdgate.cli import main

main()
