"""Which engine learns a model; heavy imports happen here and only when needed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from islab.core import families
from islab.core.dependencies import needed
from islab.core.posterior import Posterior
from islab.learn.engines.base import DenseEngine, Problem

if TYPE_CHECKING:
    from islab.learn.stage import Stage

ENGINES = ("auto", "native", "torch")
DEVICES = ("cpu", "cuda", "mps", "xpu")
POSTERIORS = ("independent", "flow")


@dataclass(frozen=True)
class EngineChoice:
    """What computes, and which family of posteriors it learns.

    Parameters
    ----------
    name : {"auto", "native", "torch"}
        ``auto`` is native on a CPU where it is compiled, else torch.
    posterior : {"independent", "flow"}
        Independent weights, or weights tied by a multiplicative normalizing flow.
    device : str
        cpu, cuda or mps; only torch leaves the CPU.
    options : dict
        Further arguments of the engine.
    """

    name: str = "auto"
    posterior: str = "independent"
    device: str = "cpu"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value, known in (
            ("engine", self.name, ENGINES),
            ("posterior", self.posterior, POSTERIORS),
        ):
            if value not in known:
                raise ValueError(f"Got {name}={value!r}, expected one of {', '.join(known)}.")
        if str(self.device).partition(":")[0] not in DEVICES:
            raise ValueError(
                f"Got device={self.device!r}, expected one of {', '.join(DEVICES)}, with a number "
                "if there are several: 'cuda:1'."
            )
        if self.name == "native" and self.device != "cpu":
            raise ValueError(
                f"Got engine='native' on {self.device!r}; it learns on the CPU only: use "
                "engine='torch'."
            )

    def resolve(self) -> type[DenseEngine]:
        """The engine class."""
        if self.name == "torch" or self.device != "cpu":
            _require_device(needed("torch", "The torch engine", "islab-bnn[torch]"), self.device)
            return _torch_engine(self.posterior)
        try:
            return _native_engine(self.posterior)
        except ImportError:
            if self.name == "native":
                raise
        try:
            return _torch_engine(self.posterior)
        except ImportError as error:
            raise ImportError(
                "No engine to train with: the compiled module is missing and torch is not "
                "installed; install a wheel of islab-bnn, a C++ compiler, or "
                "`pip install islab-bnn[torch]`."
            ) from error

    def serving(
        self, likelihood: str, activation: str | tuple[str, ...], biases_selected: bool = False
    ) -> EngineChoice:
        """The same choice, or torch for ``auto`` where there is no compiled version.

        Compiled code has one activation in all layers, and biases that are certain.
        """
        compiled = isinstance(activation, str) and families.activation(activation).kernel
        if biases_selected:
            compiled = None
        if self.name != "auto" or (compiled and families.likelihood(likelihood).kernel):
            return self
        return replace(self, name="torch")

    def with_independent_weights(self) -> EngineChoice:
        """The same choice for independent weights."""
        return (
            self if self.posterior == "independent" else EngineChoice(self.name, device=self.device)
        )

    def create(self, start: Posterior, problem: Problem, stage: Stage, seed: int) -> DenseEngine:
        """An engine that holds the starting posterior and the data."""
        engine: Any = self.resolve()
        options = dict(self.options)
        if engine.parallel == "processes":
            options["device"] = self.device
        return engine(
            start, problem, seed=seed, noise_rate=stage.noise_rate, betas=stage.betas, **options
        )


def current_posterior(name: Any) -> Any:
    """The present name of a kind of posterior; version 0.1 called independent weights ``lrt``."""
    return "independent" if isinstance(name, str) and name == "lrt" else name


def warn_of_old_posterior(name: Any) -> None:
    """Warns if a kind of posterior is given by its name of version 0.1."""
    if current_posterior(name) is not name:
        warnings.warn(
            f"posterior={name!r} is now called posterior={current_posterior(name)!r}; the old "
            "name will be removed in the next version.",
            FutureWarning,
            stacklevel=4,
        )


def _require_device(torch: Any, device: str) -> None:
    """Refuses a device that this machine, or this build of torch, does not have."""
    kind, _, number = str(device).partition(":")
    if kind == "cpu":
        return
    module = torch.backends.mps if kind == "mps" else getattr(torch, kind)
    there = module.is_available()
    if there and number and kind != "mps":
        there = number.isdecimal() and int(number) < module.device_count()
    if not there:
        raise ValueError(
            f"Got device={str(device)!r}, expected one that torch finds here; try device='cpu'."
        )


def _native_engine(posterior: str) -> type[DenseEngine]:
    if posterior == "flow":
        from islab.learn.engines.native.flow import NativeFlowEngine

        return NativeFlowEngine
    from islab.learn.engines.native import NativeEngine

    return NativeEngine


def _torch_engine(posterior: str) -> type[DenseEngine]:
    if posterior == "flow":
        from islab.learn.engines.torch.flow import FlowEngine

        return FlowEngine
    from islab.learn.engines.torch.dense import TorchEngine

    return TorchEngine
