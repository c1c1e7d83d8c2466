"""Normalizing flows in torch, a group of layers at a time."""

from __future__ import annotations

from math import log, pi

import torch
from torch import Tensor

from islab.learn.engines.flows import LARGEST_LOG_SCALE, N_VECTORS, FlowGroup


def transformed(z: Tensor, pieces: list[Tensor], moved: Tensor) -> tuple[Tensor, Tensor]:
    """``z`` (group, draws, inputs) after one transform, and the log-determinant (group, draws)."""
    w1, b1, w2, b2, w3, b3 = pieces
    hidden = torch.baddbmm(b1, z, w1).tanh_()
    hidden = torch.baddbmm(b2, hidden, w2).tanh_()
    s, t = torch.baddbmm(b3, hidden, w3).chunk(2, dim=-1)
    s = moved * (LARGEST_LOG_SCALE * torch.tanh(s / LARGEST_LOG_SCALE))
    return torch.addcmul(moved * t, z, s.exp()), s.sum(-1)


def push(z: Tensor, pieces: list[Tensor], moved: list[Tensor]) -> tuple[Tensor, Tensor]:
    """``z`` after transforms, one for each of ``moved``, and the sum of their log-determinants."""
    log_det = z.new_zeros(z.shape[:-1])
    for number, entries in enumerate(moved):
        z, change = transformed(z, pieces[6 * number : 6 * number + 6], entries)
        log_det = log_det + change
    return z, log_det


def sample(pieces: list[Tensor], eps: Tensor, moved: list[Tensor]) -> tuple[Tensor, Tensor]:
    """``z`` (group, draws, inputs) from standard normal ``eps``, and ``log q(z)``."""
    mean, log_variance = pieces[0], pieces[1]
    z = torch.addcmul(mean, (0.5 * log_variance).exp(), eps)
    log_q = -0.5 * (log(2 * pi) + log_variance + eps * eps).sum(-1)
    z, log_det = push(z, pieces[N_VECTORS : N_VECTORS + 6 * len(moved)], moved)
    return z, log_q - log_det


def log_r(pieces: list[Tensor], z: Tensor, statistic: Tensor, moved: list[Tensor]) -> Tensor:
    """``log r(z | W)``, (group, draws), given the mean over units of ``hardtanh(c W)``."""
    mean = torch.addcmul(pieces[2], pieces[5], statistic)
    log_variance = torch.addcmul(pieces[3], pieces[6], statistic)
    z_b, log_det = push(z, pieces[N_VECTORS + 6 * len(moved) :], moved)
    error = z_b - mean
    density = log(2 * pi) + log_variance + error * error * (-log_variance).exp()
    return -0.5 * density.sum(-1) + log_det


def moved_entries(group: FlowGroup, device: torch.device, dtype: torch.dtype) -> list[Tensor]:
    """The transforms' masks of moved entries as tensors."""
    return [torch.as_tensor(t.moved, device=device, dtype=dtype) for t in group.transforms]
