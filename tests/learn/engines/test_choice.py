"""Which engine learns what."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from islab.learn.engines import EngineChoice
from islab.learn.engines.choice import _require_device

CODE = """
import sys
import numpy as np
from islab import ISLaBRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 1)) + 0.2 * rng.standard_normal((200, 2))
y = X.sum(axis=1) + rng.standard_normal(200)
model = ISLaBRegressor(posterior="flow", hidden_layer_sizes=(), random_state=0)
model.fit(X, y).predict_interval(X)
assert model.posterior_.multipliers is not None
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize(
    ("name", "posterior", "expected"),
    [
        ("auto", "independent", "NativeEngine"),
        ("auto", "flow", "NativeFlowEngine"),
        ("native", "flow", "NativeFlowEngine"),
        ("torch", "independent", "TorchEngine"),
        ("torch", "flow", "FlowEngine"),
    ],
)
def test_posteriors_have_an_engine_of_either_kind(name, posterior, expected):
    pytest.importorskip("islab.learn.engines.native")
    pytest.importorskip("torch")
    assert EngineChoice(name, posterior=posterior).resolve().__name__ == expected


@pytest.mark.parametrize("posterior", ["independent", "flow"])
def test_without_the_compiled_engine_torch_learns(monkeypatch, posterior):
    pytest.importorskip("torch")
    for module in ("islab.learn.engines.native", "islab.learn.engines.native.flow"):
        monkeypatch.setitem(sys.modules, module, None)
    assert "native" not in EngineChoice(posterior=posterior).resolve().__module__
    with pytest.raises(ImportError):
        EngineChoice("native", posterior=posterior).resolve()


@pytest.mark.parametrize("posterior", ["independent", "flow"])
def test_without_any_engine_the_remedy_is_named(monkeypatch, posterior):
    for module in ("native", "native.flow", "torch.dense", "torch.flow"):
        monkeypatch.setitem(sys.modules, f"islab.learn.engines.{module}", None)
    with pytest.raises(ImportError, match=r"pip install islab-bnn\[torch\]"):
        EngineChoice(posterior=posterior).resolve()


@pytest.mark.parametrize("choice", [EngineChoice("torch"), EngineChoice(device="cuda")])
def test_torch_that_was_asked_for_is_named(monkeypatch, choice):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"torch engine needs torch.*islab-bnn\[torch\]"):
        choice.resolve()


def test_the_compiled_engine_stays_on_the_cpu():
    with pytest.raises(ValueError, match="use engine='torch'"):
        EngineChoice("native", device="cuda")


def test_flows_need_no_torch():
    pytest.importorskip("islab.learn.engines.native")
    subprocess.run([sys.executable, "-c", CODE], check=True)


def torch_with(**devices):
    """A torch that finds so many devices of each kind."""

    def kind(number):
        return SimpleNamespace(is_available=lambda: number > 0, device_count=lambda: number)

    found = {name: kind(devices.get(name, 0)) for name in ("cuda", "xpu")}
    return SimpleNamespace(**found, backends=SimpleNamespace(mps=kind(devices.get("mps", 0))))


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "xpu", "mps"])
def test_a_device_that_is_not_there_is_refused(monkeypatch, device):
    monkeypatch.setitem(sys.modules, "torch", torch_with())
    with pytest.raises(ValueError, match=f"Got device='{device}', expected one that torch finds"):
        EngineChoice("torch", device=device).resolve()


@pytest.mark.parametrize("device", ["cuda:2", "cuda:-1", "cuda:first"])
def test_a_number_that_no_device_has_is_refused(device):
    with pytest.raises(ValueError, match=f"Got device='{device}'.*try device='cpu'"):
        _require_device(torch_with(cuda=2), device)


@pytest.mark.parametrize("device", ["cpu", "cpu:0", "cuda", "cuda:1", "mps", "mps:0"])
def test_devices_that_are_there_are_taken(device):
    _require_device(torch_with(cuda=2, mps=1), device)
