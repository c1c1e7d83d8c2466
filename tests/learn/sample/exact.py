"""Posteriors and priors by enumeration, to judge chains by."""

from itertools import product

import numpy as np
from scipy.special import betaln, digamma, gammaln, logsumexp

from islab.core.architecture import Architecture
from islab.core.paths import active_weights
from islab.learn.sample import ChainPrior, Start


def empty_start(net, tau2=1.0, noise=1.0):
    """Where a chain starts that has no edge yet."""
    return Start(
        slots=np.zeros(0, dtype=np.intp),
        weights=np.zeros(0),
        bias=np.zeros(net.n_units),
        tau2=np.full(len(net.blocks), tau2),
        noise=np.full(net.n_outputs, noise),
    )


def normalised(log_values):
    return np.exp(log_values - logsumexp(log_values))


def inclusion_and_pairs(masks, probabilities):
    """P(in) of each column, and P(both in) of each pair."""
    weighted = masks * probabilities[:, None]
    return weighted.sum(axis=0), weighted.T @ masks


def log_levels(size, used):
    """Log probability of a choice among the covariates of a variable that is used."""
    choices = gammaln(size + 1) - gammaln(used + 1) - gammaln(size - used + 1)
    # k of them with a probability proportional to 1 / k
    number = -np.log(np.maximum(used, 1)) - np.log(digamma(size + 1) - digamma(1))
    return np.where(used > 0, number - choices, 0.0)


def log_choice(read, edges, n_variables, per_variable, prior):
    """Log probability of edges of variables, where each number of those allowed is as probable."""
    allowed = np.arange(n_variables + 1)[:, None]
    subsets = np.maximum(allowed - read, 0)
    chosen = log_binomial(n_variables - read, subsets) - log_binomial(n_variables, allowed)
    left = np.maximum(allowed * per_variable - edges, 0)
    heights = chosen + betaln(prior.inclusion_a + edges, prior.inclusion_b + left)
    return logsumexp(np.where(allowed >= read, heights, -np.inf), axis=0) - np.log(n_variables + 1)


def log_binomial(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def linear_posterior(x, y, weight, prior, groups=None):
    """P(in) and P(both in) of a Gaussian linear model: all structures, scales on a grid."""
    n, v = x.shape
    columns = np.c_[np.ones(n), x]
    gram, cross = (columns.T * weight) @ columns, (columns.T * weight) @ y
    log_noise, log_tau2 = np.linspace(-6, 2, 41), np.linspace(-5, 6, 40)
    noise, tau2 = np.exp(log_noise)[:, None], np.exp(log_tau2)[None]
    hyper = (
        -prior.tau_shape * log_tau2[None]
        - prior.tau_scale / tau2
        - prior.noise_shape * log_noise[:, None]
        - prior.noise_scale / noise
    )
    masks = np.array(list(product((0.0, 1.0), repeat=v)))
    groups = np.arange(v) if groups is None else groups
    sizes = np.bincount(groups)
    heights = []
    for mask in masks:
        chosen = np.flatnonzero(np.r_[1, mask])
        k = len(chosen) - 1
        precision = np.broadcast_to(1 / tau2[..., None], (*hyper.shape, k + 1)).copy()
        precision[..., 0] = 1 / prior.bias_sd**2
        matrix = gram[np.ix_(chosen, chosen)] / noise[..., None, None]
        matrix = matrix + precision[..., None] * np.eye(k + 1)
        right = np.broadcast_to(
            (cross[chosen] / noise[..., None])[..., None], (*hyper.shape, k + 1, 1)
        )
        factor = np.linalg.cholesky(matrix)
        fit = np.linalg.solve(factor, right)[..., 0]
        evidence = (
            0.5 * np.log(precision).sum(-1)
            - np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
            + 0.5 * (fit**2).sum(-1)
            - 0.5 * (weight * y) @ y / noise
            - 0.5 * weight.sum() * np.log(noise)
        )
        used = np.bincount(groups, mask, len(sizes))
        n_used = (used > 0).sum()
        structure = betaln(prior.inclusion_a + n_used, prior.inclusion_b + len(sizes) - n_used)
        structure += log_levels(sizes, used).sum()
        heights.append(logsumexp(evidence + hyper) + structure)
    return inclusion_and_pairs(masks, normalised(np.array(heights)))


def logistic_inclusion(x, y, tau, prior, offset):
    """P(in) of a logistic model of two covariates with a known slab, by quadrature."""
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(40)
    log_weights = np.log(node_weights / node_weights.sum())
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), -1).reshape(-1, 3)
    log_grid = sum(np.meshgrid(log_weights, log_weights, log_weights, indexing="ij")).reshape(-1)
    masks = np.array(list(product((0.0, 1.0), repeat=2)))
    heights = []
    for mask in masks:
        weights = grid * np.r_[prior.bias_sd, tau * mask]
        eta = offset + weights @ np.c_[np.ones(len(x)), x].T
        log_likelihood = (y * eta - np.logaddexp(0, eta)).sum(axis=1)
        k = mask.sum()
        heights.append(
            logsumexp(log_likelihood + log_grid) + betaln(1 + k, prior.inclusion_b + 2 - k)
        )
    return inclusion_and_pairs(masks, normalised(np.array(heights)))[0]


def structures(net: Architecture, prior: ChainPrior, groups=None):
    """All structures with every weight on an active path, and their prior probabilities."""
    masks = np.array(list(product((False, True), repeat=net.n_weights)))
    masks = masks[(active_weights(net, masks) == masks).all(axis=1)]
    groups = np.arange(net.n_covariates) if groups is None else groups
    sizes = np.bincount(groups)
    widths = [max(width, prior.hidden_width) for width in net.hidden] + [net.n_outputs]
    height = -prior.price * masks.sum(axis=1)
    for block in net.blocks:
        own = masks[:, block.weights]
        if block.source == "covariate":
            by_unit = own.reshape(len(masks), -1, net.n_covariates)
            used = by_unit @ np.eye(len(sizes))[groups]
            height = height + log_levels(sizes, used).sum(axis=(1, 2))
            count, per_variable = (used > 0).sum(axis=(1, 2)), widths[block.layer]
            if prior.by_variable and block.layer < len(net.hidden):
                read = (used > 0).any(axis=1).sum(axis=1)
                height = height + log_choice(read, count, len(sizes), per_variable, prior)
                continue
            slots = per_variable * len(sizes)
        else:
            count, slots = own.sum(axis=1), widths[block.layer] * widths[block.layer - 1]
        height = height + betaln(prior.inclusion_a + count, prior.inclusion_b + slots - count)
    return masks, normalised(height)


def draw_prior(
    net: Architecture, prior: ChainPrior, n_draws: int, rng: np.random.Generator, groups=None
):
    """Weights, biases, slab variances and noise drawn from the prior."""
    masks, probabilities = structures(net, prior, groups)
    kept = masks[rng.choice(len(masks), n_draws, p=probabilities)]
    tau2 = prior.tau_scale / rng.gamma(prior.tau_shape, size=(n_draws, len(net.blocks)))
    block = net.by_block(np.arange(len(net.blocks)))
    mixing = 1.0
    if prior.df:
        mixing = prior.df / 2 / rng.gamma(prior.df / 2, size=kept.shape)
    weights = kept * rng.standard_normal(kept.shape) * np.sqrt(tau2[:, block] * mixing)
    biases = prior.bias_sd * rng.standard_normal((n_draws, net.n_units))
    noise = prior.noise_scale / rng.gamma(prior.noise_shape, size=(n_draws, net.n_outputs))
    return weights, biases, tau2, noise
