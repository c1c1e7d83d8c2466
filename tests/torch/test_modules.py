"""Networks that people build: paths through what lies between layers, and a fitted estimator."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from islab import ISLaBRegressor  # noqa: E402
from islab.torch import (  # noqa: E402
    SpikeSlabConv2d,
    SpikeSlabLinear,
    active_paths,
    explain_local,
    median,
)

CERTAIN = 9.0


def keep(layer, kept):
    """Makes exactly these weights certain."""
    with torch.no_grad():
        layer.lam.copy_(torch.where(kept, CERTAIN, -CERTAIN))


def all_in(layer):
    keep(layer, torch.ones_like(layer.lam, dtype=torch.bool))


class Block(torch.nn.Module):
    """A transformer block on tokens, and a linear read-out of their mean."""

    def __init__(self, d=3, norm=True):
        super().__init__()
        self.query, self.key, self.value = (SpikeSlabLinear(d, d) for _ in range(3))
        self.inner, self.outer = SpikeSlabLinear(d, 4), SpikeSlabLinear(4, d)
        self.norm = torch.nn.LayerNorm(d) if norm else torch.nn.Identity()
        self.out = SpikeSlabLinear(d, 1)
        for layer in (self.query, self.key, self.value, self.inner, self.outer, self.out):
            all_in(layer)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT / x.shape[-1] ** 0.5
        x = x + scores.softmax(-1) @ self.value(x)
        x = x + self.outer(torch.relu(self.inner(self.norm(x))))
        return self.out(x.mean(1))


TOKENS = torch.zeros(1, 5, 3)


def test_all_weights_of_a_whole_block_are_used():
    module = Block()
    found = active_paths(module, TOKENS)
    assert found.n_used_weights == sum(mask.numel() for mask in found.kept.values())
    assert found.inputs.all()


def test_a_channel_that_nothing_reads_ends_its_paths():
    module = Block(norm=False)
    reads = torch.tensor([[True, False, False]])
    keep(module.out, reads)
    keep(module.outer, torch.zeros(3, 4, dtype=torch.bool))  # nothing comes back from the MLP
    found = active_paths(module, TOKENS)
    assert not found.used["inner"].any()
    np.testing.assert_array_equal(found.used["value"].any(1), reads[0])
    # Which tokens are looked at depends on all channels.
    assert found.used["query"].all()
    assert found.used["key"].all()


def test_attention_without_values_uses_neither_queries_nor_keys():
    module = Block()
    keep(module.value, torch.zeros(3, 3, dtype=torch.bool))
    used = active_paths(module, TOKENS).used
    assert not any(used[name].any() for name in ("query", "key", "value"))
    assert used["inner"].all()


def test_one_token_has_nothing_to_attend_to():
    used = active_paths(Block(), TOKENS[:, :1]).used
    assert not used["query"].any()
    assert not used["key"].any()
    assert used["value"].all()


def test_normalisation_over_channels_joins_them():
    class Normalised(torch.nn.Module):
        def __init__(self, norm):
            super().__init__()
            self.first, self.last = SpikeSlabLinear(2, 2), SpikeSlabLinear(2, 1)
            self.norm = norm
            keep(self.first, torch.eye(2, dtype=torch.bool))
            keep(self.last, torch.tensor([[True, False]]))

        def forward(self, x):
            return self.last(self.norm(self.first(x)))

    x = torch.zeros(1, 2)
    plain = active_paths(Normalised(torch.nn.BatchNorm1d(2)), x)
    joined = active_paths(Normalised(torch.nn.LayerNorm(2)), x)
    assert plain.used["first"].tolist() == [[True, False], [False, False]]
    assert joined.used["first"].tolist() == [[True, False], [False, True]]
    assert plain.inputs.tolist() == [True, False]
    assert joined.inputs.tolist() == [True, True]


class Ushaped(torch.nn.Module):
    """Down by a maximum, up again, with a skip; the logit of every pixel."""

    def __init__(self):
        super().__init__()
        self.down = SpikeSlabConv2d(1, 2, 3, padding=1)
        self.deep = SpikeSlabConv2d(2, 2, 3, padding=1)
        self.out = SpikeSlabConv2d(4, 1, 1)
        for layer in (self.down, self.deep, self.out):
            all_in(layer)

    def forward(self, x):
        wide = torch.relu(self.down(x))
        deep = torch.relu(self.deep(torch.max_pool2d(wide, 2)))
        up = torch.nn.functional.interpolate(deep, scale_factor=2, mode="nearest")
        return self.out(torch.cat([wide, up], 1)).flatten(1)


IMAGES = torch.zeros(1, 1, 6, 6)


def test_paths_go_through_pooling_and_skips():
    module = Ushaped()
    assert active_paths(module, IMAGES).used["deep"].all()
    keep(module.out, torch.tensor([True, False, False, False]).view(1, 4, 1, 1))
    used = active_paths(module, IMAGES).used
    assert not used["deep"].any()
    assert used["down"].flatten(1).all(1).tolist() == [True, False]


def test_explanations_of_a_u_shaped_network_are_exact():
    torch.manual_seed(0)
    module, x = Ushaped(), torch.randn(2, 1, 6, 6)
    found = explain_local(module, x)
    total = found.baseline + found.contributions.flatten(2).sum(-1)
    expected = median(module).double()(x.double())
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("inside", [True, False])
def test_numbers_without_a_gradient_are_refused(inside):
    class Rounded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = SpikeSlabLinear(2, 3), SpikeSlabLinear(3, 1)
            all_in(self.first)
            all_in(self.last)

        def forward(self, x):
            hidden = self.first(x)
            return self.last((50 * hidden).round()) if inside else self.last(hidden).argmax(-1)

    with pytest.raises(ValueError, match="try it without rounding, argmax"):
        active_paths(Rounded(), torch.zeros(1, 2))


# -- a fitted estimator -------------------------------------------------------------------------


class Skipping(torch.nn.Module):
    """The input-skip network of an estimator."""

    def __init__(self, posterior):
        super().__init__()
        net = posterior.architecture
        self.v, sizes = net.n_covariates, [0, *net.hidden]
        self.layers = torch.nn.ModuleList()
        for below, layer in zip(sizes, posterior.layers, strict=True):
            own = SpikeSlabLinear(below + self.v, len(layer.mu)).double()
            with torch.no_grad():
                own.mu.copy_(torch.tensor(layer.mu))
                own.rho.copy_(torch.tensor(np.log(np.expm1(layer.sigma))))
                own.lam.copy_(torch.logit(torch.tensor(layer.alpha)))
                own.bias_mu.copy_(torch.tensor(layer.bias_mu))
                own.bias_rho.copy_(torch.tensor(np.log(np.expm1(layer.bias_sigma))))
            self.layers.append(own)

    def forward(self, x):
        hidden = x[:, :0]
        for layer in self.layers[:-1]:
            hidden = torch.relu(layer(torch.cat([hidden, x], -1)))
        return self.layers[-1](torch.cat([hidden, x], -1))


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 4))
    y = x[:, 0] + 2 * np.maximum(x[:, 1] - 0.3, 0) + 0.1 * rng.standard_normal(300)
    model = ISLaBRegressor(
        hidden_layer_sizes=(5, 4),
        activation="relu",
        posterior="independent",
        shrink=False,
        sparsity=0.3,
        n_restarts=1,
        random_state=0,
    ).fit(x, y)
    assert any(model.posterior_.architecture.hidden)
    scale = model.network_.scale
    return model, Skipping(model.posterior_), x, torch.tensor(scale.standardise(x)), scale


def test_layers_predict_as_the_fitted_estimator(fitted):
    model, module, x, columns, scale = fitted
    expected = model.network_.predictor(x)
    with torch.no_grad():
        found = scale.restore(median(module)(columns).numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_layers_use_the_weights_of_the_fitted_estimator(fitted):
    model, module, _, columns, _ = fitted
    found = active_paths(module, columns[:1])
    net, posterior = model.posterior_.architecture, model.posterior_
    used = posterior.used_weights()
    for number in range(net.n_layers):
        expected = used[net.weight_index(number)]
        np.testing.assert_array_equal(found.used[f"layers.{number}"].numpy(), expected)
    assert found.n_used_weights == model.n_used_weights_


def test_layers_explain_as_the_fitted_estimator(fitted):
    model, module, x, columns, scale = fitted
    ours = explain_local(module, columns[:20])
    network = model.network_
    from islab.core.network import slopes

    _, gradient = slopes(
        network.architecture, network.mean_weights(), network.bias_mu, network.standardise(x[:20])
    )
    expected = np.zeros((20, 1, 4))
    expected[..., network.covariates] = gradient
    np.testing.assert_allclose(ours.slopes.numpy(), expected, rtol=1e-9, atol=1e-9)
    # The spread of draws is the same too: coherent draws of kept weights.
    drawn = explain_local(module, columns[:3], n_draws=2000).draws[..., 0].std(0).squeeze().numpy()
    theirs = model.explain_local(x[:3], model="median", kind="linear", n_draws=2000)
    spread = theirs.draws.slopes(slice(0, 3))[..., 0].std(axis=0)
    place = int(np.flatnonzero(theirs.used == 0)[0])
    own = drawn * scale.y_scale[0] / scale.x_scale[0]
    np.testing.assert_allclose(own, spread[:, place], rtol=0.1)
