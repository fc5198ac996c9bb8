"""`python -m herdgate_loadtest.engine`; see `herdgate_loadtest.engine.command`."""

import sys

from herdgate_loadtest.engine.command import main

sys.exit(main())
