"""Layers for people's own networks against the torch engine and the paths of the package."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from islab.core.architecture import Architecture  # noqa: E402
from islab.core.equations import gaussian_kl, kl, moments  # noqa: E402
from islab.core.paths import active_weights  # noqa: E402
from islab.core.posterior import Initial, Posterior  # noqa: E402
from islab.core.priors import Prior  # noqa: E402
from islab.learn.engines.base import Problem  # noqa: E402
from islab.learn.engines.torch.dense import TorchEngine  # noqa: E402
from islab.learn.engines.torch.flow import FlowEngine  # noqa: E402
from islab.torch import (  # noqa: E402
    SpikeSlabConv2d,
    SpikeSlabLinear,
    active_paths,
    explain_local,
    median,
    parameter_groups,
)
from islab.torch import kl as kl_of  # noqa: E402
from islab.torch.layers import BIAS_TAU  # noqa: E402


class Skipping(torch.nn.Module):
    """An input-skip network as people write one."""

    def __init__(self, v=3, h=4, m=2, **options):
        super().__init__()
        self.first = SpikeSlabLinear(v, h, inclusion=(-3, 3), **options)
        self.second = SpikeSlabLinear(h + v, h, inclusion=(-3, 3), **options)
        self.last = SpikeSlabLinear(h + v, m, inclusion=(-3, 3), **options)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        hidden = torch.relu(self.second(torch.cat([hidden, x], -1)))
        return self.last(torch.cat([hidden, x], -1))


def as_layer(engine, net, **options):
    options = {"tau": 1.5, "psi": 0.2, **options}
    layer = SpikeSlabLinear(net.n_covariates, net.n_outputs, **options).double()
    parts = engine.parts(engine.theta.detach())
    shape = layer.mu.shape
    with torch.no_grad():
        for own, part in zip((layer.mu, layer.rho, layer.lam), parts[:3], strict=True):
            own.copy_(part.view(shape))
        layer.bias_mu.copy_(parts[3])
        layer.bias_rho.copy_(parts[4])
    return layer


def test_a_layer_has_the_moments_kl_and_gradients_of_the_engine():
    net = Architecture(3, (), 2)
    rng = np.random.default_rng(0)
    start = Posterior.initialise(net, rng, Initial(), "gaussian")
    problem = Problem(rng.normal(size=(5, 3)), rng.normal(size=(5, 2)))
    engine = TorchEngine(start, problem, seed=0, dtype=torch.float64)
    blocks = len(net.blocks)
    prior = Prior(np.full(blocks, 1.5), np.full(blocks, 0.2), bias_tau=BIAS_TAU)
    engine.set_prior(prior, np.ones(blocks))
    layer = as_layer(engine, net)
    mean, variance, value = engine.weights(engine.generator, value=True)
    own = layer.weights()
    torch.testing.assert_close(own.mean.flatten(), mean[0])
    torch.testing.assert_close(own.variance.flatten(), variance[0])
    torch.testing.assert_close(own.kl, value)
    (mean[0].sum() + variance[0].sum() + value).backward()
    (own.mean.sum() + own.variance.sum() + own.kl).backward()
    found = [p.grad.flatten() for p in (layer.mu, layer.rho, layer.lam)]
    torch.testing.assert_close(torch.cat(found), engine.theta.grad[: 3 * net.n_weights])


@pytest.mark.parametrize("make", [lambda: SpikeSlabLinear(4, 3), lambda: SpikeSlabConv2d(2, 3, 3)])
def test_the_kl_is_the_papers_formula(make):
    layer = make().double()
    sigma, alpha = (
        f(p).detach().numpy()
        for f, p in ((torch.nn.functional.softplus, layer.rho), (torch.sigmoid, layer.lam))
    )
    expected = kl(layer.mu.detach().numpy(), sigma, alpha, tau=1.0, psi=0.1).sum()
    bias_sigma = torch.nn.functional.softplus(layer.bias_rho).detach().numpy()
    bias = gaussian_kl(layer.bias_mu.detach().numpy(), bias_sigma, tau=BIAS_TAU).sum()
    assert layer.kl().item() == pytest.approx(expected + bias, rel=1e-10)
    expected_mean, _ = moments(layer.mu.detach().numpy(), sigma, alpha)
    np.testing.assert_allclose(layer.weights().mean.detach().numpy(), expected_mean)


def test_a_convolution_spreads_as_its_patches_do():
    torch.manual_seed(0)
    layer = SpikeSlabConv2d(2, 3, 3, stride=2, padding=1).double()
    x = torch.randn(1, 2, 5, 5, dtype=torch.float64)
    own = layer.weights()
    draws = torch.cat([layer(x.expand(4000, -1, -1, -1))]).detach()
    sd = torch.conv2d(x * x, own.variance, own.bias_variance, stride=2, padding=1).sqrt()
    torch.testing.assert_close(draws.std(0), sd[0].detach(), rtol=0.1, atol=0.0)


def test_paths_through_a_module_are_those_of_the_package():
    net = Architecture(3, (4, 4), 2)
    for seed in range(20):
        torch.manual_seed(seed)
        module = Skipping()
        parts = {name: getattr(module, name).alpha > 0.5 for name in ("first", "second", "last")}
        kept = np.zeros(net.n_weights, dtype=bool)
        for block in net.blocks:
            mask = list(parts.values())[block.layer].numpy()
            hidden = mask.shape[1] - 3
            own = mask[:, :hidden] if block.source == "hidden" else mask[:, hidden:]
            block.view(kept)[...] = own
        found = active_paths(module, torch.zeros(1, 3))
        assert found.n_used_weights == active_weights(net, kept).sum()


def test_slopes_and_contributions_add_up_to_the_median_network():
    torch.manual_seed(1)
    module, x = Skipping(), torch.randn(6, 3)
    found = explain_local(module, x, n_draws=50)
    total = found.baseline + found.contributions.sum(-1)
    torch.testing.assert_close(total, median(module).double()(x.double()))
    moved = x.double() + 1e-7
    ahead = median(module).double()(moved)
    torch.testing.assert_close(ahead, found.baseline + (found.slopes * moved[:, None]).sum(-1))
    frame = found.to_frame()
    assert (frame["low"] <= frame["high"]).all()


def test_a_network_that_bends_says_so():
    module = torch.nn.Sequential(
        SpikeSlabLinear(2, 3, inclusion=(3, 3)),
        torch.nn.Sigmoid(),
        SpikeSlabLinear(3, 1, inclusion=(3, 3)),
    )
    with pytest.warns(UserWarning, match="not piecewise linear"):
        explain_local(module, torch.randn(2, 2))


@pytest.mark.parametrize("flow", ["iaf", "rnvp"])
def test_a_flow_starts_with_the_kl_of_independent_weights(flow):
    torch.manual_seed(0)
    layer = SpikeSlabLinear(4, 3, flow=flow).double()
    draws = torch.stack([layer.kl() for _ in range(200)]).detach()
    plain = SpikeSlabLinear(4, 3).double()
    plain.load_state_dict({n: p for n, p in layer.state_dict().items() if "flow" not in n})
    assert float(draws.mean()) == pytest.approx(plain.kl().item(), abs=0.2)


def test_flows_learn_at_a_rate_of_their_own_and_keep_their_masks():
    torch.manual_seed(0)
    module = Skipping(flow="iaf")
    groups = parameter_groups(module, 0.01)
    assert [group["lr"] for group in groups] == [0.01, 0.1, 0.001]
    module(torch.randn(5, 3)).square().sum().add(kl_of(module)).backward()
    torch.optim.Adam(groups).step()
    forbidden = ~torch.tensor(module.first.flow.group.transforms[0].first)
    assert (module.first.flow.pieces[7][0][forbidden] == 0).all()


def test_a_median_needs_a_spike_and_slab_layer():
    with pytest.raises(ValueError, match="expected one or more"):
        median(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("kind", ["iaf", "rnvp"])
def test_a_flow_layer_is_the_flow_engine(kind):
    net = Architecture(4, (), 3)
    rng = np.random.default_rng(0)
    start = Posterior.initialise(net, rng, Initial(), "gaussian")
    problem = Problem(rng.normal(size=(5, 4)), rng.normal(size=(5, 3)))
    engine = FlowEngine(start, problem, seed=0, flow=kind, flow_width=6, dtype=torch.float64)
    blocks = len(net.blocks)
    prior = Prior(np.full(blocks, 1.5), np.full(blocks, 0.2), bias_tau=BIAS_TAU)
    engine.set_prior(prior, np.ones(blocks))
    options = {"tau": 1.5, "psi": 0.2, "flow": kind, "flow_width": 6}
    layer = as_layer(engine, net, **options)
    with torch.no_grad():
        for own, piece in zip(layer.flow.pieces, engine.flows, strict=True):
            own.copy_(piece + 0.1 * torch.randn(piece.shape) * own.abs().sign())
            piece.copy_(own)
    generators = [torch.Generator().manual_seed(3) for _ in range(2)]
    mean, variance, value = engine.weights(generators[0], value=True)
    own = layer.weights(generators[1])
    torch.testing.assert_close(own.mean.flatten(), mean[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(own.variance.flatten(), variance[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(own.kl, value, rtol=1e-12, atol=1e-12)
    (mean[0].sum() + value).backward()
    (own.mean.sum() + own.kl).backward()
    for ours, theirs, free in zip(layer.flow.pieces, engine.flows, engine._free, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad * free, rtol=1e-10, atol=1e-12)


# -- biases that are selected ---------------------------------------------------------------------


def test_selected_biases_have_the_papers_kl_and_a_gradient():
    torch.manual_seed(0)
    layer = SpikeSlabLinear(3, 2, tau=1.5, psi=0.2, bias_psi=0.3, inclusion=(-1, 1)).double()
    with torch.no_grad():
        layer.bias_mu.normal_()
    numbers = [p.detach().numpy() for p in (layer.mu, layer.rho, layer.lam)]
    own = [p.detach().numpy() for p in (layer.bias_mu, layer.bias_rho, layer.bias_lam)]
    expected = sum(
        kl(mu, np.log1p(np.exp(rho)), 1 / (1 + np.exp(-lam)), tau=tau, psi=psi).sum()
        for (mu, rho, lam), tau, psi in ((numbers, 1.5, 0.2), (own, BIAS_TAU, 0.3))
    )
    assert layer.kl().item() == pytest.approx(expected)
    layer.kl().backward()
    assert (layer.bias_lam.grad != 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: SpikeSlabLinear(3, 2, bias_psi=0.3, inclusion=(2, 2)),
        lambda: SpikeSlabConv2d(3, 2, 3, bias_psi=0.3, inclusion=(2, 2)),
        lambda: SpikeSlabLinear(3, 2, bias_psi=0.3, inclusion=(2, 2), flow="iaf", flow_width=5),
    ],
)
def test_the_median_layer_and_draws_have_no_bias_that_is_out(make):
    torch.manual_seed(0)
    layer = make()
    with torch.no_grad():
        layer.bias_mu.fill_(1.0)
        layer.bias_lam.copy_(torch.tensor([-3.0, 3.0]))
    assert layer.median().bias.tolist() == [0.0, 1.0]
    _, drawn = layer.draw(2000, generator=torch.Generator().manual_seed(0))
    share = (drawn != 0).float().mean(0)
    torch.testing.assert_close(share, layer.bias_alpha.detach(), atol=0.03, rtol=0)
    _, kept = layer.draw(3, kept_biases=layer.bias_alpha > 0.5)
    assert (kept[:, 0] == 0).all()
    assert (kept[:, 1] != 0).all()


def test_selected_biases_spread_as_their_moments_say():
    torch.manual_seed(0)
    layer = SpikeSlabLinear(1, 1, bias_psi=0.3, inclusion=(0.5, 0.5))
    with torch.no_grad():
        layer.bias_mu.fill_(2.0)
        layer.mu.fill_(0.0)
    found = layer(torch.zeros(100_000, 1)).detach()
    _, drawn = layer.draw(100_000)
    assert found.mean().item() == pytest.approx(drawn.mean().item(), abs=0.02)
    assert found.std().item() == pytest.approx(drawn.std().item(), rel=0.02)
    layer.eval()
    assert layer(torch.zeros(1, 1)).item() == pytest.approx(2 * layer.bias_alpha.item())


def test_inclusion_of_biases_learns_at_the_rate_of_inclusion():
    layer = SpikeSlabLinear(2, 1, bias_psi=0.3)
    groups = parameter_groups(layer, rate=0.01)
    ids = {id(each): group["lr"] for group in groups for each in group["params"]}
    assert ids[id(layer.bias_lam)] == pytest.approx(0.1)
    assert ids[id(layer.bias_mu)] == 0.01


def test_explanations_leave_out_biases_that_are_out():
    torch.manual_seed(0)
    layer = SpikeSlabLinear(2, 1, bias_psi=0.3, inclusion=(3, 3))
    with torch.no_grad():
        layer.bias_mu.fill_(1.0)
        layer.bias_lam.fill_(-3.0)
    found = explain_local(layer, torch.zeros(1, 2), n_draws=5)
    assert found.baseline.tolist() == [[0.0]]


def test_an_impossible_prior_inclusion_of_biases_is_named():
    with pytest.raises(ValueError, match="Got bias_psi=1, expected a probability between 0 and 1"):
        SpikeSlabLinear(2, 1, bias_psi=1)
