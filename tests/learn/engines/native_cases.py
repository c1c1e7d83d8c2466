"""What the native engine and the torch engine are both given."""

from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch")
native = pytest.importorskip("islab.learn.engines.native")

from islab.core import families  # noqa: E402
from islab.core.architecture import Architecture  # noqa: E402
from islab.core.posterior import Posterior  # noqa: E402
from islab.core.priors import Prior  # noqa: E402
from islab.learn.engines import Problem, Steps  # noqa: E402
from islab.learn.engines.base import ADAM_BETAS  # noqa: E402
from islab.learn.engines.native import NativeEngine  # noqa: E402
from islab.learn.engines.torch.dense import TorchEngine  # noqa: E402

NAMES = ("mu", "rho", "lam", "bias_mu", "bias_rho", "noise")


@dataclass(frozen=True)
class Case:
    """Everything that two engines need to take the same steps."""

    posterior: Posterior
    problem: Problem
    prior: Prior
    mu_step: np.ndarray
    steps: Steps
    noise: np.ndarray
    betas: tuple[float, float] = ADAM_BETAS

    def torch(self, dtype=torch.float64):
        return self._ready(TorchEngine, dtype)

    def native(self, dtype=np.float64, kind=NativeEngine):
        return self._ready(kind, dtype)

    def _ready(self, kind, dtype):
        engine = kind(self.posterior, self.problem, seed=1, dtype=dtype, betas=self.betas)
        engine.set_prior(self.prior, self.mu_step)
        return engine


def make_case(
    hidden=(7, 3),
    covariates=5,
    outputs=2,
    likelihood="bernoulli",
    weighted=False,
    df=None,
    n_rows=60,
    sizes=(16, 16, 9, 16, 3),
    seed=0,
    offset=False,
    **wiring,
) -> Case:
    rng = np.random.default_rng(seed)
    outputs += outputs % families.likelihood(likelihood).n_predictors
    net = Architecture(covariates, hidden, outputs, **wiring)
    x = rng.standard_normal((n_rows, covariates))
    y = {
        "bernoulli": rng.integers(2, size=(n_rows, outputs)),
        "categorical": np.eye(outputs)[rng.integers(outputs, size=n_rows)],
        "gaussian": rng.standard_normal((n_rows, outputs)),
        "student_t": rng.standard_t(2, size=(n_rows, outputs)),
        "poisson": rng.poisson(3, size=(n_rows, outputs)),
        "negative_binomial": rng.negative_binomial(2, 0.4, size=(n_rows, outputs)),
        "zero_inflated_poisson": rng.poisson(1, size=(n_rows, outputs)),
        "zero_inflated_negative_binomial": rng.negative_binomial(2, 0.6, size=(n_rows, outputs)),
        "heteroscedastic": rng.standard_normal((n_rows, outputs)),
        "ordinal": rng.integers(1, 5, size=(n_rows, outputs)),
    }[likelihood]
    weight = rng.uniform(0.2, 2, n_rows) if weighted else None
    posterior = Posterior.initialise(net, rng, likelihood=likelihood)
    posterior.lam = rng.uniform(-3, 3, net.n_weights)
    posterior.noise = families.likelihood(likelihood).start_noise(y)
    n_blocks = len(net.blocks)
    prior = Prior(rng.uniform(0.3, 3, n_blocks), rng.uniform(0.05, 0.6, n_blocks), df=df)
    steps = Steps(
        rows=rng.integers(n_rows, size=sum(sizes)),
        sizes=np.array(sizes),
        rate=rng.uniform(0.005, 0.02, len(sizes)),
        lambda_rate=rng.uniform(0.005, 0.05, len(sizes)),
        kl_weight=np.linspace(0.2, 1, len(sizes)),
    )
    noise = rng.standard_normal((sum(sizes), net.n_units))
    shift = rng.standard_normal(y.shape) if offset else None
    problem = Problem(x, y.astype(float), weight, shift)
    return Case(posterior, problem, prior, rng.uniform(1, 3, n_blocks), steps, noise)


def flat(engine) -> np.ndarray:
    now = engine.parameters()
    return np.concatenate([getattr(now, name) for name in NAMES]).astype(float)


def assert_same_steps(case: Case, kind=NativeEngine) -> None:
    """NLL, Adam's moments of the gradients and parameters agree to 1e-9."""
    oracle, engine = case.torch(), case.native(kind=kind)
    expected = oracle.run(case.steps, case.noise)
    assert engine.run(case.steps, case.noise) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(flat(engine), flat(oracle), rtol=1e-9, atol=1e-9)
    state = oracle.state()
    for mine, theirs in (("first", "exp_avg"), ("second", "exp_avg_sq")):
        np.testing.assert_allclose(engine.state()[mine], state[theirs], rtol=1e-9, atol=1e-9)


SHAPES = {
    "two layers": {},
    "no skip": {"input_skip": False},
    "no hidden layer": {"hidden": ()},
    "an empty layer": {"hidden": (4, 0, 3)},
    "an empty layer without skip": {"hidden": (4, 0, 3), "input_skip": False},
    "only empty layers": {"hidden": (0, 0)},
    "no covariates": {"covariates": 0},
    "one of everything": {"hidden": (1,), "covariates": 1, "outputs": 1},
    "odd widths": {"hidden": (9, 17, 2, 5), "covariates": 11, "outputs": 3},
}
