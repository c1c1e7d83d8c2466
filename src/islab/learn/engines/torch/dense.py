"""The torch engine: independent weights on any device, by autograd.

All weights are one vector, so that moments, KL and Adam cost a handful of operations
whatever the depth, and the covariates of all layers share one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from islab.core.architecture import Architecture
from islab.core.equations import gaussian_kl, gradients, kl_from_lambda, moments
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.engines.base import (
    ADAM_BETAS,
    ADAM_EPS,
    LARGEST_LAMBDA,
    LARGEST_RHO,
    DenseParameters,
    Parameters,
    Problem,
    State,
    Steps,
    flat_parameters,
)

Flat = tuple[Tensor, Tensor]  # something for every weight and for every bias

ADAM_MOMENTS = ("exp_avg", "exp_avg_sq")
ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class TensorPrior:
    """A prior by weight, as tensors; ``value`` says whether the KL itself is wanted."""

    tau: Tensor
    logit_psi: Tensor
    log_not_psi: Tensor
    df: float | None
    value: bool = False


class SpikeAndSlab(torch.autograd.Function):
    """Moments and KL of all weights at once, with the gradient in closed form."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, rho: Tensor, lam: Tensor, prior: TensorPrior) -> Any:
        alpha, sigma = torch.sigmoid(lam), F.softplus(rho)
        ctx.save_for_backward(mu, rho, lam, alpha, sigma)
        ctx.prior = prior
        mean, variance = moments(mu, sigma, alpha)
        if not prior.value:
            return mean, variance, mu.new_zeros(())
        kl = kl_from_lambda(
            mu,
            sigma,
            alpha,
            lam,
            F.softplus(lam),
            tau=prior.tau,
            logit_psi=prior.logit_psi,
            log_not_psi=prior.log_not_psi,
            df=prior.df,
        )
        return mean, variance, kl.sum()

    @staticmethod
    def backward(ctx: Any, *by: Tensor) -> Any:
        mu, rho, lam, alpha, sigma = ctx.saved_tensors
        prior = ctx.prior
        sigmoid_rho = torch.sigmoid(rho)
        return *gradients(
            mu,
            sigma,
            alpha,
            lam,
            sigmoid_rho,
            *by,
            tau=prior.tau,
            logit_psi=prior.logit_psi,
            df=prior.df,
        ), None


class TorchEngine(DenseParameters):
    """Learns a dense posterior with the local reparametrisation trick.

    Parameters
    ----------
    posterior, problem, seed, noise_rate, betas
        See :class:`~islab.learn.engines.base.DenseParameters`.
    device : str
        cpu, cuda or mps.
    dtype : torch.dtype
    """

    parallel: ClassVar[str] = "processes"

    def __init__(
        self,
        posterior: Posterior,
        problem: Problem,
        *,
        seed: int,
        noise_rate: float = 0.02,
        betas: tuple[float, float] = ADAM_BETAS,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.device, self.dtype, self.betas = torch.device(device), dtype, betas
        # Of sums over many rows; mps has no double precision.
        self.exact = torch.float32 if self.device.type == "mps" else torch.float64
        super().__init__(posterior, problem, noise_rate)
        self.x, self.y = self._tensor(problem.x), self._tensor(problem.y)
        weight = problem.sample_weight
        self.sample_weight = None if weight is None else self._tensor(weight)
        self.offset = None if problem.offset is None else self._tensor(problem.offset)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.noise = self._tensor(posterior.noise)
        self._allocate(posterior.architecture, flat_parameters(posterior))

    # -- protocol -----------------------------------------------------------------------

    def set_prior(self, prior: Prior, mu_step: NDArray) -> None:
        by_block = self.architecture.by_block
        psi = by_block(prior.psi)
        self.bias_tau, self.bias_prior = prior.bias_tau, None
        if prior.bias_psi is not None:
            self.bias_prior = TensorPrior(
                tau=self._tensor(np.array(prior.bias_tau)),
                logit_psi=self._tensor(np.log(prior.bias_psi) - np.log1p(-prior.bias_psi)),
                log_not_psi=self._tensor(np.log1p(-prior.bias_psi)),
                df=None,
            )
        self.prior = TensorPrior(
            tau=self._tensor(by_block(prior.tau)),
            logit_psi=self._tensor(np.log(psi) - np.log1p(-psi)),
            log_not_psi=self._tensor(np.log1p(-psi)),
            df=prior.df,
        )
        plain = bool((np.asarray(mu_step) == 1).all())
        self.mu_step = None if plain else self._tensor(by_block(mu_step))

    def run(self, steps: Steps, random_normals: NDArray | None = None) -> float:
        total = torch.zeros((), dtype=self.exact, device=self.device)
        rows = torch.as_tensor(steps.rows, device=self.device)
        ends = np.cumsum(steps.sizes).tolist()
        for number, (stop, size) in enumerate(zip(ends, steps.sizes.tolist(), strict=True)):
            start = stop - size
            eps = None if random_normals is None else self._tensor(random_normals[start:stop].T)
            total += self._step(
                rows[start:stop],
                eps,
                float(steps.rate[number]),
                float(steps.lambda_rate[number]),
                float(steps.kl_weight[number]) * size / self.n_rows,
            )
        return float(total) / ends[-1]

    def parameters(self) -> Parameters:
        names = ("mu", "rho", "lam", "bias_mu", "bias_rho", "bias_lam")
        parts = dict(zip(names, self.parts(self.theta.detach()), strict=False))
        parts["noise"] = self.noise
        return Parameters(**{name: part.cpu().numpy() for name, part in parts.items()})

    def kl(self) -> float:
        with torch.no_grad():
            return float(self.weights(self.generator, value=True)[2])

    def expected_nll(self, passes: int, seed: int) -> float:
        generator = torch.Generator(self.device).manual_seed(seed)
        total = 0.0
        with torch.no_grad():
            for _ in range(passes):
                mean, variance, _ = self.weights(generator)
                for rows in torch.arange(self.n_rows, device=self.device).split(ROWS_AT_ONCE):
                    eps = self.normal((self.architecture.n_units, len(rows)), generator)
                    eta = self._predictor(rows, mean, variance, eps)
                    total += float(self._nll(rows, eta).sum(dtype=self.exact))
        return total / passes

    def keep_units(self, masks: list[NDArray[np.bool_]], bias_shift: NDArray) -> None:
        kept = self.architecture.keep_units(masks)
        with torch.no_grad():
            self.parts(self.theta)[3].add_(self._tensor(bias_shift))
        where = torch.as_tensor(self._places(kept), device=self.device)
        adam = self.optimiser.state[self.theta]
        moments = [adam[name][where] for name in ADAM_MOMENTS]
        self._allocate(kept.architecture, self.theta.detach()[where], moments, int(adam["step"]))

    def state(self) -> State:
        arrays = {
            "theta": self.theta.detach(),
            "noise": self.noise,
            "generator": self.generator.get_state(),
            **self.optimiser.state[self.theta],
        }
        state = {name: tensor.cpu().numpy().copy() for name, tensor in arrays.items()}
        state["hidden"] = np.array(self.architecture.hidden, dtype=np.int64)
        return state

    def restore(self, state: State) -> None:
        architecture = replace(self.architecture, hidden=tuple(state["hidden"].tolist()))
        moments = [state[name] for name in ADAM_MOMENTS]
        self._allocate(architecture, state["theta"], moments, int(state["step"]))
        self.noise = self._tensor(state["noise"])
        self.generator.set_state(torch.from_numpy(state["generator"].copy()))

    # -- one step -----------------------------------------------------------------------

    def _step(
        self, rows: Tensor, eps: Tensor | None, rate: float, lambda_rate: float, kl_weight: float
    ) -> Tensor:
        mean, variance, kl = self.weights(self.generator)
        if eps is None:
            eps = self.normal((self.architecture.n_units, len(rows)), self.generator)
        eta = self._predictor(rows, mean, variance, eps)
        nll = self._nll(rows, eta).sum()
        (nll + kl_weight * kl).backward()
        self.update(rate, lambda_rate)
        if self.noise_rate:
            self._follow_noise(rows, eta.detach())
        return nll.detach()

    def weights(self, generator: torch.Generator, value: bool = False) -> tuple[Flat, Flat, Tensor]:
        """Mean and variance of all weights and biases, and their KL.

        The KL's number is computed only where ``value`` asks for it, its gradient
        always.
        """
        return self._spike_and_slab(*self.parts(self.theta), value=value)

    def _spike_and_slab(
        self,
        mu: Tensor,
        rho: Tensor,
        lam: Tensor,
        bias_mu: Tensor,
        bias_rho: Tensor,
        bias_lam: Tensor | None = None,
        *,
        value: bool,
    ) -> tuple[Flat, Flat, Tensor]:
        prior = replace(self.prior, value=value)
        mean, variance, kl = SpikeAndSlab.apply(mu, rho, lam, prior)
        if bias_lam is not None:
            assert self.bias_prior is not None
            own = replace(self.bias_prior, value=value)
            *biases, bias_kl = SpikeAndSlab.apply(bias_mu, bias_rho, bias_lam, own)
            return (mean, biases[0]), (variance, biases[1]), kl + bias_kl
        bias_sigma = F.softplus(bias_rho)
        kl = kl + gaussian_kl(bias_mu, bias_sigma, tau=self.bias_tau).sum()
        return (mean, bias_mu), (variance, bias_sigma * bias_sigma), kl

    def _predictor(self, rows: Tensor, mean: Flat, variance: Flat, eps: Tensor) -> Tensor:
        eta = self.forward(self.x[rows], mean, variance, eps)
        return eta if self.offset is None else eta + self.offset[rows]

    def forward(self, x: Tensor, mean: Flat, variance: Flat, eps: Tensor) -> Tensor:
        """The linear predictor of a batch, with fresh random numbers on every pre-activation.

        Inside, units are rows and data rows are columns, so that the units of a layer lie
        together. Vectors are split once rather than sliced: the gradient of a slice would fill
        a vector of zeros for each piece.
        """
        net = self.architecture
        mean_weights, variance_weights = self._matrices(mean[0]), self._matrices(variance[0])
        widths = list(net.widths)
        m = self._covariate_part(x, mean_weights[0], mean[1]).split(widths)
        v = self._covariate_part(x * x, variance_weights[0], variance[1]).split(widths)
        normals = eps.split(widths)
        z = torch.addcmul(m[0], v[0].sqrt(), normals[0])
        for layer in range(1, net.n_layers):
            m_layer, v_layer = m[layer], v[layer]
            if net.widths[layer - 1]:
                hidden = net.activations[layer - 1].torch(z)
                m_layer = torch.addmm(m_layer, mean_weights[layer], hidden)
                v_layer = torch.addmm(v_layer, variance_weights[layer], hidden * hidden)
            z = torch.addcmul(m_layer, v_layer.sqrt(), normals[layer])
        return z.T

    def _matrices(self, weights: Tensor) -> list[Tensor]:
        """The covariate matrix of all layers, then each layer's hidden weights."""
        net = self.architecture
        hidden = [net.hidden_block(layer) for layer in range(1, net.n_layers)]
        shapes = [(net.n_covariate_rows, net.n_covariates)]
        shapes += [(block.n_targets, block.n_sources) for block in hidden]
        parts = weights.split([rows * columns for rows, columns in shapes])
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]

    def _covariate_part(self, x: Tensor, covariates: Tensor, biases: Tensor) -> Tensor:
        """What covariates and biases send to all units, (units, rows)."""
        net = self.architecture
        if net.input_skip:
            return torch.addmm(biases[:, None], covariates, x.T)
        first, rest = biases.split([net.n_covariate_rows, net.n_units - net.n_covariate_rows])
        reached = torch.addmm(first[:, None], covariates, x.T)
        return torch.cat([reached, rest[:, None].expand(-1, len(x))])

    def _nll(self, rows: Tensor, eta: Tensor) -> Tensor:
        nll = self.likelihood.nll(self.y[rows], eta, self.noise)
        return nll if self.sample_weight is None else nll * self.sample_weight[rows]

    def gradients(self) -> list[Tensor]:
        """Those that the next update takes."""
        return [] if self.theta.grad is None else [self.theta.grad]

    @torch.no_grad()
    def update(self, rate: float, lambda_rate: float) -> None:
        """One step of Adam; the steps of the means and of lambda are stretched afterwards."""
        mu, rho, lam, _, bias_rho, *bias_lam = self.parts(self.theta)
        inclusion = [lam, *bias_lam]
        old_mu = None if self.mu_step is None else mu.clone()
        old_lam = None if lambda_rate == rate else [own.clone() for own in inclusion]
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.step()
        self.theta.grad = None
        if old_mu is not None and self.mu_step is not None:
            mu.copy_(torch.lerp(old_mu, mu, self.mu_step))
        if old_lam is not None:
            for old, own in zip(old_lam, inclusion, strict=True):
                own.copy_(torch.lerp(old, own, lambda_rate / rate if rate else 0.0))
        rho.clamp_(max=LARGEST_RHO)
        for own in inclusion:
            own.clamp_(-LARGEST_LAMBDA, LARGEST_LAMBDA)
        bias_rho.clamp_(max=LARGEST_RHO)

    @torch.no_grad()
    def _follow_noise(self, rows: Tensor, eta: Tensor) -> None:
        error = self.likelihood.noise_terms(self.y[rows], eta, self.noise)
        if self.sample_weight is None:
            variance = error.mean(0)
        else:
            weight = self.sample_weight[rows, None]
            variance = (weight * error).sum(0) / weight.sum()
        self.noise.lerp_(variance, self.noise_rate)

    # -- memory -------------------------------------------------------------------------

    def _allocate(
        self,
        architecture: Architecture,
        theta: NDArray | Tensor,
        moments: Sequence[NDArray | Tensor] = (),
        n_steps: int = 0,
    ) -> None:
        self.architecture = architecture
        self.theta = self._tensor(theta).requires_grad_()
        self.optimiser = self._adam([self.theta], [[moment] for moment in moments], n_steps)

    def _adam(
        self,
        parameters: list[Tensor],
        moments: Sequence[Sequence[NDArray | Tensor]] = (),
        n_steps: int = 0,
    ) -> torch.optim.Adam:
        """Adam with the first and second moments and the number of steps it had before."""
        fused = self.device.type != "mps"
        adam = torch.optim.Adam(parameters, betas=self.betas, eps=ADAM_EPS, fused=fused)
        zeros = [torch.zeros_like(tensor, requires_grad=False) for tensor in parameters]
        for tensor, first, second in zip(parameters, *(moments or (zeros, zeros)), strict=True):
            adam.state[tensor] = {
                "step": torch.tensor(float(n_steps), device=self.device),
                "exp_avg": self._tensor(first),
                "exp_avg_sq": self._tensor(second),
            }
        return adam

    def parts(self, theta: Tensor) -> tuple[Tensor, ...]:
        """mu, rho, lam, bias_mu, bias_rho and, where biases are selected, bias_lam as views."""
        return theta.split(self._sizes())

    def normal(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=self.dtype, device=self.device)

    def _tensor(self, array: NDArray | Tensor) -> Tensor:
        return torch.as_tensor(array).to(self.device, self.dtype, copy=True)
