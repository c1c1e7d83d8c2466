"""The torch engine: the equations by autograd, for LRT and FLOW posteriors on any device.

All weights are one vector, so that moments, divergence and Adam cost a handful of operations
whatever the depth, and the covariates of all layers share one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from islab.architecture import LEAKY_SLOPE, Architecture
from islab.engines.base import (
    ADAM_BETAS,
    ADAM_EPS,
    LARGEST_LAMBDA,
    LARGEST_RHO,
    Parameters,
    Problem,
    State,
    Steps,
)
from islab.equations import gaussian_kl, kl_from_lambda, moments
from islab.likelihoods import get_likelihood
from islab.posterior import Posterior
from islab.priors import Prior

Flat = tuple[Tensor, Tensor]  # something for every weight and for every bias

ROWS_AT_ONCE = 8192


def activate(name: str, z: Tensor) -> Tensor:
    """The activation function of that name."""
    if name == "relu":
        return F.relu(z)
    if name == "leaky_relu":
        return F.leaky_relu(z, LEAKY_SLOPE)
    if name == "sigmoid":
        return torch.sigmoid(z)
    if name == "tanh":
        return torch.tanh(z)
    return z


class TorchEngine:
    """Learns a dense posterior with the local reparametrisation trick.

    Parameters
    ----------
    posterior : Posterior
        Where to start; copied.
    problem : Problem
    seed : int
    noise_rate : float
        Share by which Gaussian noise variances move to their optimum at each step; 0 fixes them.
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
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.device, self.dtype = torch.device(device), dtype
        self.likelihood = get_likelihood(posterior.likelihood)
        self.noise_rate = noise_rate if self.likelihood.learns_noise else 0.0
        self.n_rows = problem.n_rows
        self.x, self.y = self._tensor(problem.x), self._tensor(problem.y)
        weight = problem.sample_weight
        self.sample_weight = None if weight is None else self._tensor(weight)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.n_weights_initial = posterior.n_weights_initial
        self.noise = self._tensor(posterior.noise)
        self._allocate(posterior.architecture, self._start(posterior, seed))

    # -- protocol -----------------------------------------------------------------------

    def set_prior(self, prior: Prior, mu_step: NDArray) -> None:
        self.prior = prior
        by_block = self.architecture.by_block
        self.tau = self._tensor(by_block(prior.tau))
        psi = by_block(prior.psi)
        self.log_not_psi = self._tensor(np.log1p(-psi))
        self.logit_psi = self._tensor(np.log(psi) - np.log1p(-psi))
        self.mu_step = self._tensor(by_block(mu_step))
        self._rates_at = (np.nan, np.nan)

    def run(self, steps: Steps, noise: NDArray | None = None) -> float:
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        rows = torch.as_tensor(steps.rows, device=self.device)
        ends = np.cumsum(steps.sizes).tolist()
        for number, (stop, size) in enumerate(zip(ends, steps.sizes.tolist(), strict=True)):
            start = stop - size
            eps = None if noise is None else self._tensor(noise[start:stop])
            nll = self._step(
                rows[start:stop],
                eps,
                float(steps.rate[number]),
                float(steps.lambda_rate[number]),
                float(steps.kl_weight[number]) * size / self.n_rows,
            )
            total += nll
        return float(total) / ends[-1]

    def parameters(self) -> Parameters:
        parts = (*self._parts(self.theta.detach())[:5], self.noise)
        return Parameters(*(part.cpu().numpy() for part in parts))

    def posterior(self) -> Posterior:
        now = self.parameters()
        return Posterior(
            architecture=self.architecture,
            mu=now.mu.astype(float),
            rho=now.rho.astype(float),
            lam=now.lam.astype(float),
            bias_mu=now.bias_mu.astype(float),
            bias_rho=now.bias_rho.astype(float),
            likelihood=self.likelihood.name,
            noise=now.noise.astype(float),
            n_weights_initial=self.n_weights_initial,
        )

    def kl(self) -> float:
        with torch.no_grad():
            return float(self._weights(self.generator)[2])

    def expected_nll(self, passes: int, seed: int) -> float:
        generator = torch.Generator(self.device).manual_seed(seed)
        total = 0.0
        with torch.no_grad():
            for _ in range(passes):
                mean, variance, _ = self._weights(generator)
                for rows in torch.arange(self.n_rows, device=self.device).split(ROWS_AT_ONCE):
                    eps = self._normal(len(rows), generator)
                    eta = self._forward(self.x[rows], mean, variance, eps)
                    total += float(self._nll(rows, eta).double().sum())
        return total / passes

    def keep_units(self, masks: list[NDArray[np.bool_]], bias_shift: NDArray) -> None:
        kept = self.architecture.keep_units(masks)
        with torch.no_grad():
            self._parts(self.theta)[3].add_(self._tensor(bias_shift))
        w, u = self.architecture.n_weights, self.architecture.n_units
        starts = (0, w, 2 * w, 3 * w, 3 * w + u, 3 * w + 2 * u)
        index = [kept.weights] * 3 + [kept.units] * 2 + [np.arange(self._n_extra)]
        flat = np.concatenate([s + i for s, i in zip(starts, index, strict=True)])
        where = torch.as_tensor(flat, device=self.device)
        vectors = [vector.detach()[where] for vector in (self.theta, self.first, self.second)]
        self._allocate(kept.architecture, vectors[0], vectors[1:], self.n_steps)

    def state(self) -> State:
        arrays = {
            "theta": self.theta.detach(),
            "first": self.first,
            "second": self.second,
            "noise": self.noise,
            "generator": self.generator.get_state(),
        }
        state = {name: tensor.cpu().numpy().copy() for name, tensor in arrays.items()}
        state["n_steps"] = np.array(self.n_steps)
        state["hidden"] = np.array(self.architecture.hidden, dtype=np.int64)
        return state

    def restore(self, state: State) -> None:
        hidden = tuple(state["hidden"].tolist())
        architecture = replace(self.architecture, hidden=hidden)
        moments = [state["first"], state["second"]]
        self._allocate(architecture, state["theta"], moments, int(state["n_steps"]))
        self.noise = self._tensor(state["noise"])
        self.generator.set_state(torch.from_numpy(state["generator"].copy()))

    # -- one step -----------------------------------------------------------------------

    def _step(
        self, rows: Tensor, eps: Tensor | None, rate: float, lambda_rate: float, kl_weight: float
    ) -> Tensor:
        mean, variance, kl = self._weights(self.generator)
        if eps is None:
            eps = self._normal(len(rows), self.generator)
        eta = self._forward(self.x[rows], mean, variance, eps)
        nll = self._nll(rows, eta).sum()
        self.theta.grad = None
        (nll + kl_weight * kl).backward()
        self._adam(rate, lambda_rate)
        if self.noise_rate:
            self._follow_noise(rows, eta.detach())
        return nll.detach()

    def _weights(self, generator: torch.Generator) -> tuple[Flat, Flat, Tensor]:
        """Mean and variance of all weights and biases, and their divergence."""
        mu, rho, lam, bias_mu, bias_rho, _ = self._parts(self.theta)
        return self._spike_and_slab(mu, rho, lam, bias_mu, bias_rho)

    def _spike_and_slab(
        self, mu: Tensor, rho: Tensor, lam: Tensor, bias_mu: Tensor, bias_rho: Tensor
    ) -> tuple[Flat, Flat, Tensor]:
        alpha, sigma = torch.sigmoid(lam), F.softplus(rho)
        bias_sigma = F.softplus(bias_rho)
        mean, variance = moments(mu, sigma, alpha)
        kl = kl_from_lambda(
            mu,
            sigma,
            alpha,
            lam,
            F.softplus(lam),
            tau=self.tau,
            logit_psi=self.logit_psi,
            log_not_psi=self.log_not_psi,
            df=self.prior.df,
        ).sum()
        kl = kl + gaussian_kl(bias_mu, bias_sigma, tau=self.prior.bias_tau).sum()
        return (mean, bias_mu), (variance, bias_sigma * bias_sigma), kl

    def _forward(self, x: Tensor, mean: Flat, variance: Flat, eps: Tensor) -> Tensor:
        """The linear predictor of a batch, with fresh noise on every pre-activation."""
        net = self.architecture
        m, v = self._covariate_part(x, *mean), self._covariate_part(x * x, *variance)
        z = torch.empty(0)
        for layer, units in enumerate(net.units):
            m_layer, v_layer = m[:, units], v[:, units]
            if layer and net.widths[layer - 1]:
                block = net.hidden_block(layer)
                hidden = activate(net.activation, z)
                m_layer = torch.addmm(m_layer, hidden, block.view(mean[0]).T)
                v_layer = torch.addmm(v_layer, hidden * hidden, block.view(variance[0]).T)
            z = torch.addcmul(m_layer, v_layer.sqrt(), eps[:, units])
        return z

    def _covariate_part(self, x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
        """What covariates and biases send to all units, (rows, units)."""
        net = self.architecture
        covariates = net.covariate_matrix(weights)
        if net.input_skip:
            return torch.addmm(biases, x, covariates.T)
        first = net.n_covariate_rows
        rest = biases[first:].expand(len(x), -1)
        return torch.cat([torch.addmm(biases[:first], x, covariates.T), rest], dim=1)

    def _nll(self, rows: Tensor, eta: Tensor) -> Tensor:
        nll = self.likelihood.nll(self.y[rows], eta, self.noise)
        return nll if self.sample_weight is None else nll * self.sample_weight[rows]

    @torch.no_grad()
    def _adam(self, rate: float, lambda_rate: float) -> None:
        self.n_steps += 1
        gradient = self._gradient()
        beta1, beta2 = ADAM_BETAS
        self.first.lerp_(gradient, 1 - beta1)
        self.second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        root = self.second.sqrt().mul_((1 - beta2**self.n_steps) ** -0.5).add_(ADAM_EPS)
        step = self.first * self._rates(rate, lambda_rate)
        self.theta.addcdiv_(step, root, value=-1 / (1 - beta1**self.n_steps))
        _, rho, lam, _, bias_rho, _ = self._parts(self.theta)
        rho.clamp_(max=LARGEST_RHO)
        lam.clamp_(-LARGEST_LAMBDA, LARGEST_LAMBDA)
        bias_rho.clamp_(max=LARGEST_RHO)

    def _gradient(self) -> Tensor:
        assert self.theta.grad is not None
        return self.theta.grad

    def _rates(self, rate: float, lambda_rate: float) -> Tensor:
        """Adam's rate of every parameter."""
        if self._rates_at != (rate, lambda_rate):
            mu, _, lam, _, _, _ = self._parts(self.rates)
            self.rates.fill_(rate)
            mu.mul_(self.mu_step)
            lam.fill_(lambda_rate)
            self._rates_at = (rate, lambda_rate)
        return self.rates

    @torch.no_grad()
    def _follow_noise(self, rows: Tensor, eta: Tensor) -> None:
        error = (self.y[rows] - eta).square()
        if self.sample_weight is None:
            variance = error.mean(0)
        else:
            weight = self.sample_weight[rows, None]
            variance = (weight * error).sum(0) / weight.sum()
        self.noise.lerp_(variance, self.noise_rate)

    # -- memory -------------------------------------------------------------------------

    _n_extra = 0  # parameters of subclasses beyond weights and biases

    def _start(self, posterior: Posterior, seed: int) -> NDArray:
        """All parameters of the starting posterior, flat."""
        parts = (posterior.mu, posterior.rho, posterior.lam, posterior.bias_mu, posterior.bias_rho)
        return np.concatenate(parts)

    def _allocate(
        self,
        architecture: Architecture,
        theta: NDArray | Tensor,
        moments: Sequence[NDArray | Tensor] = (),
        n_steps: int = 0,
    ) -> None:
        self.architecture = architecture
        w, u = architecture.n_weights, architecture.n_units
        self._sizes = [w, w, w, u, u, self._n_extra]
        self.theta = self._tensor(theta).requires_grad_()
        zeros = torch.zeros_like(self.theta, requires_grad=False)
        self.first, self.second = map(self._tensor, moments or (zeros, zeros))
        self.rates, self._rates_at = zeros, (np.nan, np.nan)
        self.n_steps = n_steps

    def _parts(self, theta: Tensor) -> tuple[Tensor, ...]:
        """mu, rho, lam, bias_mu, bias_rho and what a subclass adds, as views."""
        return theta.split(self._sizes)

    def _normal(self, n_rows: int, generator: torch.Generator) -> Tensor:
        shape = (n_rows, self.architecture.n_units)
        return torch.randn(shape, generator=generator, dtype=self.dtype, device=self.device)

    def _tensor(self, array: NDArray | Tensor) -> Tensor:
        return torch.as_tensor(array).to(self.device, self.dtype, copy=True)
