import pytest

pytest.importorskip("islab.learn.sample.native._chains", reason="needs the compiled chains")
