import importlib
import sys

import pytest

from islab import evaluate


def test_the_old_name_of_the_module_still_works():
    sys.modules.pop("islab.metrics", None)
    with pytest.warns(FutureWarning, match=r"now islab\.evaluate"):
        old = importlib.import_module("islab.metrics")
    assert old.crps is evaluate.crps
