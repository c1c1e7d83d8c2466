"""The yardstick: the same models written plainly with modules, autograd and torch.optim.Adam.

One module for each layer, inputs concatenated, masks multiplied in at every call, the weights'
divergence computed layer by layer: what one writes first.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PlainLayer(nn.Module):
    """A spike-and-slab layer with the local reparametrisation trick."""

    def __init__(self, n_inputs: int, n_outputs: int, tau: float = 1.0, psi: float = 0.1) -> None:
        super().__init__()
        shape = (n_outputs, n_inputs)
        self.mu = nn.Parameter(torch.empty(shape).uniform_(-0.2, 0.2))
        self.rho = nn.Parameter(-4 + 0.1 * torch.randn(shape))
        self.lam = nn.Parameter(torch.empty(shape).uniform_(-2, 2))
        self.bias_mu = nn.Parameter(torch.zeros(n_outputs))
        self.bias_rho = nn.Parameter(torch.full((n_outputs,), -4.0))
        self.tau, self.psi = torch.tensor(tau), torch.tensor(psi)

    def forward(self, x: Tensor) -> Tensor:
        return self.local(x, self.mu)

    def local(self, x: Tensor, mu: Tensor) -> Tensor:
        alpha, sigma = torch.sigmoid(self.lam), F.softplus(self.rho)
        mean = F.linear(x, alpha * mu, self.bias_mu)
        weight_variance = alpha * (sigma**2 + (1 - alpha) * mu**2)
        variance = F.linear(x**2, weight_variance, F.softplus(self.bias_rho) ** 2)
        return mean + torch.sqrt(variance) * torch.randn_like(mean)

    def kl(self) -> Tensor:
        return self.weight_kl(self.mu)

    def weight_kl(self, mu: Tensor) -> Tensor:
        alpha, sigma = torch.sigmoid(self.lam), F.softplus(self.rho)
        bias_sigma = F.softplus(self.bias_rho)
        slab = torch.log(self.tau / sigma) - 0.5 + (sigma**2 + mu**2) / (2 * self.tau**2)
        spike = (1 - alpha) * torch.log((1 - alpha + 1e-20) / (1 - self.psi))
        bias = torch.log(1 / bias_sigma) - 0.5 + (bias_sigma**2 + self.bias_mu**2) / 2
        inclusion = torch.log((alpha + 1e-20) / self.psi)
        return (alpha * (slab + inclusion) + spike).sum() + bias.sum()


class MaskedLinear(nn.Linear):
    def __init__(self, mask: Tensor) -> None:
        super().__init__(mask.shape[1], mask.shape[0])
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.mask * self.weight, self.bias)


class PlainFlow(nn.Module):
    """Inverse autoregressive transforms over masked networks."""

    def __init__(self, n_inputs: int, n_transforms: int = 2, width: int = 250) -> None:
        super().__init__()
        order = torch.arange(n_inputs)
        degree = torch.arange(width) % max(n_inputs - 1, 1)
        self.networks = nn.ModuleList()
        for _ in range(n_transforms):
            first = (degree[:, None] >= order[None]).float()
            middle = (degree[:, None] >= degree[None]).float()
            last = (order[:, None] > degree[None]).float()
            layers = (MaskedLinear(first), MaskedLinear(middle))
            heads = (MaskedLinear(last), MaskedLinear(last))
            self.networks.append(nn.ModuleList([*layers, *heads]))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        log_det = torch.zeros(())
        for first, middle, shift, scale in self.networks:
            hidden = torch.tanh(middle(torch.tanh(first(z))))
            gate = torch.sigmoid(scale(hidden))
            z = gate * z + (1 - gate) * shift(hidden)
            log_det = log_det + torch.log(gate).sum()
            z = z.flip(0)
        return z, log_det


class PlainFlowLayer(PlainLayer):
    """Means multiplied by z; one sample for the forward pass, another for the divergence."""

    def __init__(self, n_inputs: int, n_outputs: int) -> None:
        super().__init__(n_inputs, n_outputs)
        self.q0_mean = nn.Parameter(torch.ones(n_inputs))
        self.q0_log_var = nn.Parameter(torch.full((n_inputs,), -9.0))
        self.q_flow, self.r_flow = PlainFlow(n_inputs), PlainFlow(n_inputs)
        self.c, self.b1, self.b2 = (nn.Parameter(0.01 * torch.randn(n_inputs)) for _ in range(3))

    def sample_z(self) -> tuple[Tensor, Tensor, Tensor]:
        eps = torch.randn_like(self.q0_mean)
        z0 = self.q0_mean + torch.exp(0.5 * self.q0_log_var) * eps
        z, log_det = self.q_flow(z0)
        return z, log_det, eps

    def forward(self, x: Tensor) -> Tensor:
        z, _, _ = self.sample_z()
        return self.local(x, z * self.mu)

    def kl(self) -> Tensor:
        z, log_det, eps = self.sample_z()
        mu = z * self.mu
        log_q = -0.5 * (self.q0_log_var + eps**2).sum() - log_det
        alpha, sigma = torch.sigmoid(self.lam), F.softplus(self.rho)
        mean = (alpha * mu) @ self.c
        variance = (alpha * (sigma**2 + (1 - alpha) * mu**2)) @ self.c**2
        a = F.hardtanh(mean + torch.sqrt(variance) * torch.randn_like(mean))
        mean_r = torch.outer(self.b1, a).mean(1)
        log_var_r = torch.outer(self.b2, a).mean(1)
        z_b, log_det_r = self.r_flow(z)
        log_r = -0.5 * (log_var_r + (z_b - mean_r) ** 2 / torch.exp(log_var_r)).sum() + log_det_r
        return self.weight_kl(mu) + log_q - log_r


class PlainNetwork(nn.Module):
    """An input-skip network of plain layers with a sigmoid activation, and its training step."""

    def __init__(
        self,
        n_covariates: int,
        hidden: tuple[int, ...],
        n_outputs: int,
        likelihood: str,
        layer: type[PlainLayer] = PlainLayer,
    ) -> None:
        super().__init__()
        inputs = [n_covariates, *(n_covariates + width for width in hidden)]
        sizes = zip(inputs, (*hidden, n_outputs), strict=True)
        self.layers = nn.ModuleList([layer(a, b) for a, b in sizes])
        self.likelihood = likelihood
        self.optimiser = torch.optim.Adam(self.parameters(), lr=0.01)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.sigmoid(self.layers[0](x)) if len(self.layers) > 1 else self.layers[0](x)
        for layer in self.layers[1:-1]:
            h = torch.sigmoid(layer(torch.cat([h, x], dim=1)))
        return self.layers[-1](torch.cat([h, x], dim=1)) if len(self.layers) > 1 else h

    def step(self, x: Tensor, y: Tensor, n_batches: int) -> float:
        self.optimiser.zero_grad()
        eta = self(x)
        if self.likelihood == "bernoulli":
            nll = F.binary_cross_entropy_with_logits(eta, y, reduction="sum")
        elif self.likelihood == "categorical":
            nll = F.cross_entropy(eta, y.argmax(1), reduction="sum")
        else:
            nll = F.mse_loss(eta, y, reduction="sum")
        loss = nll + sum(layer.kl() for layer in self.layers) / n_batches
        loss.backward()
        self.optimiser.step()
        return loss.item()
