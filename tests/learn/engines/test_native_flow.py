"""The native engine with flows against the torch engine, step by step, and against itself."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("islab.learn.engines.native")

from islab.learn.engines.flows import N_VECTORS  # noqa: E402
from islab.learn.engines.native.flow import NativeFlowEngine, turned  # noqa: E402
from islab.learn.engines.torch.dense import TorchEngine  # noqa: E402
from islab.learn.engines.torch.flow import FlowEngine  # noqa: E402
from tests.learn.engines.native_cases import NAMES, make_case  # noqa: E402

WIDTH = 11


class GivenNoise(FlowEngine):
    """Takes the numbers behind z and behind the statistics from a queue."""

    def normal(self, shape, generator):
        return self._tensor(self.queue.pop(0)).reshape(shape)


def layers_by_group(engine):
    """Layers in the order in which the torch engine draws."""
    return [layer for group in engine.groups for layer in group.layers]


def take_flow_noise(torch_engine, net, noise):
    """Queues one step's numbers (inputs of tied layers, then units) in torch's order."""
    layers = sorted(layers_by_group(torch_engine))
    sizes = [torch_engine.n_inputs[layer] for layer in layers]
    parts = dict(zip(layers, np.split(noise[: sum(sizes)], np.cumsum(sizes)[:-1]), strict=True))
    units = np.split(noise[sum(sizes) :], np.cumsum(net.widths)[:-1])
    z = [np.concatenate([parts[n] for n in group.layers]) for group in torch_engine.groups]
    torch_engine.queue = z + [units[layer] for layer in layers_by_group(torch_engine)]


def flows_by_layer(torch_engine):
    """The torch engine's parameters in the native engine's order."""
    by_layer, cut = {}, torch_engine._cut()
    for group, pieces in zip(torch_engine.groups, cut, strict=True):
        for place, layer in enumerate(group.layers):
            parts = []
            for number, piece in enumerate(pieces):
                own = piece[place].detach().numpy()
                last = number >= N_VECTORS and (number - N_VECTORS) % 6 == 4
                parts.append((own.T if last else own).ravel())
            by_layer[layer] = np.concatenate(parts)
    return np.concatenate([by_layer[layer] for layer in sorted(by_layer)])


def make_pair(case, dtype=np.float64, **options):
    """Both engines with the same flows, far from the identity."""
    options = {"flow_width": WIDTH, **options}
    other = GivenNoise(case.posterior, case.problem, seed=1, dtype=torch.float64, **options)
    own = NativeFlowEngine(case.posterior, case.problem, seed=1, dtype=dtype, **options)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for piece, free in zip(other.flows, other._free, strict=True):
            piece += 0.2 * free * torch.randn(piece.shape, generator=generator, dtype=piece.dtype)
    own.flows[...] = flows_by_layer(other)
    for engine in (other, own):
        engine.set_prior(case.prior, case.mu_step)
    return other, own


def flow_noise(engine, n_steps, rng):
    n_inputs = sum(group.n_inputs for group in engine.groups)
    return rng.standard_normal((n_steps, n_inputs + engine.architecture.n_units))


def one_step(steps, number):
    ends = np.cumsum([0, *steps.sizes])
    part = slice(number, number + 1)
    rows = slice(ends[number], ends[number + 1])
    return rows, type(steps)(
        steps.rows[rows],
        steps.sizes[part],
        steps.rate[part],
        steps.lambda_rate[part],
        steps.kl_weight[part],
    )


CASES = {
    "two layers": {},
    "equal layers": {"hidden": (6, 6, 6)},
    "linear": {"hidden": ()},
    "one covariate": {"hidden": (3,), "covariates": 1},
    "no covariates": {"covariates": 0},
    "more inputs than a flow is wide": {"covariates": 2 * WIDTH},
    "no input skip": {"input_skip": False},
    "an empty layer": {"hidden": (4, 0, 3)},
    "student": {"df": 4.0},
    "gaussian": {"likelihood": "gaussian"},
    "weighted classes": {"likelihood": "categorical", "outputs": 3, "weighted": True},
}


def run_both(other, own, case, seed):
    """The same steps with the same noise; the mean NLL of both."""
    noise = flow_noise(own, len(case.steps), np.random.default_rng(seed))
    of_units = case.noise[:, : own.architecture.n_units]
    total = 0.0
    for number in range(len(case.steps)):
        rows, step = one_step(case.steps, number)
        take_flow_noise(other, own.architecture, noise[number])
        total += other.run(step, of_units[rows]) * len(step.rows)
    return total / len(case.steps.rows), own.run(case.steps, of_units, noise)


def assert_equal(other, own):
    for field in NAMES:
        np.testing.assert_allclose(
            getattr(own.parameters(), field),
            getattr(other.parameters(), field),
            rtol=1e-7,
            atol=1e-9,
            err_msg=field,
        )


@pytest.mark.parametrize("flow", ["iaf", "rnvp"])
@pytest.mark.parametrize("name", CASES)
def test_steps_equal_torch(name, flow):
    case = make_case(**CASES[name])
    other, own = make_pair(case, flow=flow, n_transforms=3 if name == "two layers" else 2)
    theirs, ours = run_both(other, own, case, 3)
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert_equal(other, own)
    np.testing.assert_allclose(own.flows, flows_by_layer(other), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("flow", ["iaf", "rnvp"])
@pytest.mark.parametrize(
    ("kept", "input_skip"),
    [((4, 2), True), ((0, 2), True), ((3, 0), True), ((0, 0), True), ((4, 2), False)],
)
def test_steps_equal_torch_after_units_are_dropped(flow, kept, input_skip):
    case = make_case(hidden=(6, 4), input_skip=input_skip)
    other, own = make_pair(case, flow=flow)
    run_both(other, own, case, 3)
    masks = [np.random.default_rng(1).permutation(n) < k for n, k in zip((6, 4), kept, strict=True)]
    shift = np.linspace(-1, 1, own.architecture.n_units)
    for engine in (other, own):
        engine.keep_units(masks, shift)
        engine.set_prior(case.prior, case.mu_step)
    theirs, ours = run_both(other, own, case, 4)
    assert own.architecture.hidden == kept
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert_equal(other, own)
    noise = flow_noise(own, 1, np.random.default_rng(5))
    assert divergence(own, noise) == pytest.approx(divergence(other, noise), rel=1e-9)


def divergence(engine, noise):
    """For one z, behind which are these numbers."""
    if isinstance(engine, NativeFlowEngine):
        generator, flow = engine.generator.copy(), engine._flow(noise)
        return engine._learner.divergence(theta=engine.theta, generator=generator, flow=flow)
    take_flow_noise(engine, engine.architecture, noise[0])
    return TorchEngine.kl(engine)


@pytest.mark.parametrize("name", CASES)
def test_divergence_equals_torch(name):
    case = make_case(**CASES[name])
    other, own = make_pair(case)
    noise = flow_noise(own, 1, np.random.default_rng(5))
    assert divergence(own, noise) == pytest.approx(divergence(other, noise), rel=1e-9)


@pytest.mark.parametrize("instructions", ["avx512", "avx2", "baseline"])
def test_every_instruction_set_takes_the_same_steps(instructions):
    from islab.learn.engines.native import _kernel

    if instructions not in _kernel.instruction_sets():
        pytest.skip(f"this processor has no {instructions}")
    kind = type("Variant", (NativeFlowEngine,), {"instructions": instructions})
    case = make_case()
    own = kind(case.posterior, case.problem, seed=1, dtype=np.float64, flow_width=WIDTH)
    reference = NativeFlowEngine(
        case.posterior, case.problem, seed=1, dtype=np.float64, flow_width=WIDTH
    )
    noise = flow_noise(own, len(case.steps), np.random.default_rng(3))
    for engine in (own, reference):
        engine.set_prior(case.prior, case.mu_step)
        engine.run(case.steps, case.noise, noise)
    np.testing.assert_allclose(own.flows, reference.flows, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own.theta, reference.theta, rtol=1e-9, atol=1e-12)


def test_single_precision_stays_near_double():
    case, engines = make_case(), []
    for dtype in (np.float32, np.float64):
        _, own = make_pair(case, dtype)
        noise = flow_noise(own, len(case.steps), np.random.default_rng(3))
        own.run(case.steps, case.noise, noise)
        engines.append(own)
    np.testing.assert_allclose(engines[0].theta, engines[1].theta, atol=2e-4)
    np.testing.assert_allclose(engines[0].flows, engines[1].flows, atol=2e-4)


def test_expected_nll_is_that_of_torch_on_average():
    case = make_case(likelihood="gaussian")
    other, own = make_pair(case)
    other.__class__ = FlowEngine
    theirs = [other.expected_nll(1, seed) for seed in range(400)]
    ours = [own.expected_nll(1, seed) for seed in range(400)]
    error = np.hypot(np.std(theirs), np.std(ours)) / np.sqrt(400)
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=4 * error)


def test_multipliers_have_the_moments_of_torch():
    case = make_case(hidden=(4, 3))
    other, own = make_pair(case)
    other.__class__ = FlowEngine
    theirs, ours = other.posterior().multipliers, own.posterior().multipliers
    assert theirs.shape == ours.shape
    error = np.hypot(theirs.std(0), ours.std(0)) / np.sqrt(len(ours))
    assert (np.abs(theirs.mean(0) - ours.mean(0)) < 5 * error).all()
    np.testing.assert_allclose(ours.std(0), theirs.std(0), rtol=0.2)


def test_multipliers_of_dropped_units_go():
    case = make_case(hidden=(6, 4))
    _, own = make_pair(case)
    own.run(case.steps)
    bank = own.posterior()
    masks = [np.arange(6) % 2 == 0, np.array([True, False, True, True])]
    own.keep_units(masks, np.zeros(own.architecture.n_units))
    own.set_prior(case.prior, case.mu_step)
    kept = own.posterior()
    assert own.architecture.hidden == (3, 3)
    net = bank.architecture
    columns = np.concatenate(
        [
            np.ones(net.n_covariates, bool),
            masks[0],
            np.ones(net.n_covariates, bool),
            masks[1],
            np.ones(net.n_covariates, bool),
        ]
    )
    np.testing.assert_array_equal(kept.multipliers, bank.multipliers[:, columns])


def test_state_and_restore_go_on_as_if_nothing_had_happened():
    case = make_case(hidden=(6, 4))
    _, own = make_pair(case, np.float32)
    own.run(case.steps)
    own.keep_units([np.arange(6) < 4, np.ones(4, bool)], np.zeros(own.architecture.n_units))
    own.set_prior(case.prior, case.mu_step)
    state = own.state()
    own.run(case.steps)
    fresh = NativeFlowEngine(case.posterior, case.problem, seed=9, flow_width=WIDTH)
    fresh.restore(state)
    fresh.set_prior(case.prior, case.mu_step)
    fresh.run(case.steps)
    np.testing.assert_array_equal(own.theta, fresh.theta)
    np.testing.assert_array_equal(own.flows, fresh.flows)
    assert own.kl() == fresh.kl()


def test_forbidden_weights_stay_at_zero():
    case = make_case()
    own = NativeFlowEngine(case.posterior, case.problem, seed=1, flow_width=WIDTH)
    own.set_prior(case.prior, case.mu_step)
    own.run(case.steps)
    free = np.concatenate([turned(group, group.free()) for group in own.groups])
    assert (own.flows[~free] == 0).all()
    assert (own.flows[free] != 0).mean() > 0.8


def test_unknown_flows_are_named():
    case = make_case()
    with pytest.raises(ValueError, match="iaf, rnvp"):
        NativeFlowEngine(case.posterior, case.problem, seed=1, flow="planar")


@pytest.mark.parametrize("n_transforms", [0, 20])
def test_any_number_of_transforms(n_transforms):
    case = make_case(hidden=(3,))
    other, own = make_pair(case, n_transforms=n_transforms)
    theirs, ours = run_both(other, own, case, 3)
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert_equal(other, own)


@pytest.mark.parametrize("kind", [FlowEngine, NativeFlowEngine])
def test_a_model_without_weights_has_nothing_to_tie(kind):
    case = make_case(hidden=(), covariates=0)
    engine = kind(case.posterior, case.problem, seed=1)
    engine.set_prior(case.prior, case.mu_step)
    assert np.isfinite(engine.run(case.steps))
    engine.restore(engine.state())
    assert engine.posterior().multipliers.shape == (1000, 0)


@pytest.mark.parametrize("kind", [FlowEngine, NativeFlowEngine])
def test_learning_goes_on_from_multiplied_means(kind):
    case = make_case(hidden=(3,))
    start = case.posterior
    start.input_index = start.architecture.input_index
    start.multipliers = np.full((4, start.input_index.max() + 1), 3.0)
    engine = kind(start, case.problem, seed=1, flow_width=WIDTH)
    np.testing.assert_allclose(engine.parameters().mu, 3 * start.mu, rtol=1e-6)


@pytest.mark.parametrize("place", [0, 4, 7])
def test_numbers_that_are_not_finite_are_seen(place):
    """In the mean of q, in what r knows of the weights, and in a transform."""
    case = make_case()
    _, own = make_pair(case, np.float32)
    own.flows[place * own.groups[0].n_inputs] = np.nan
    assert not np.isfinite(own.kl())


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("first", lambda a: a[:, :, ::-1].copy(), "first with a row from"),
        ("last", lambda a: a + 1, "last with a row from"),
        ("middle", lambda a: a.astype(np.int64), "middle of dtype int64"),
        ("moved", lambda a: a[:, :-1].copy(), "first of shape"),
        ("used", lambda a: a + 1, "input 5 of a flow"),
        ("used", lambda a: a[:-1], "used of shape"),
        ("used", lambda a: np.append(a, 0), "used of shape"),
    ],
)
def test_the_kernel_checks_how_flows_are_wired(name, bad, message):
    """Whatever Python says, the kernel never reads outside its memory."""
    case = make_case()
    own = NativeFlowEngine(case.posterior, case.problem, seed=1, flow_width=WIDTH)
    learner = own._learner

    class Spy:
        def set_flows(self, **wiring):
            wiring[name] = [bad(wiring[name][0]), *wiring[name][1:]]
            learner.set_flows(**wiring)

    own._learner = Spy()
    with pytest.raises(ValueError, match=message):
        own._connect()


def test_a_layer_with_weights_must_have_its_inputs():
    case = make_case()
    own = NativeFlowEngine(case.posterior, case.problem, seed=1, flow_width=WIDTH)
    own.groups = own.groups[1:]
    with pytest.raises(ValueError, match="used of shape"):
        own._connect()


def test_parameters_of_flows_must_fit():
    case = make_case()
    own = NativeFlowEngine(case.posterior, case.problem, seed=1, flow_width=WIDTH)
    own.set_prior(case.prior, case.mu_step)
    own.flows = own.flows[:-1]
    with pytest.raises(ValueError, match="flows of shape"):
        own.run(case.steps)
