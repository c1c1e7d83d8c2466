"""``python -m islab``"""

import sys

from islab.cli import main

sys.exit(main())
