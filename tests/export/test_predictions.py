"""Every exported form predicts what the network predicts."""

import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.export import to_latex, to_onnx, to_python, to_text, to_torch

CASES = [("leaky_relu", likelihood) for likelihood in families.likelihoods()]
CASES += [
    (activation, "bernoulli") for activation in families.activations() if activation != "leaky_relu"
]
CASES += [(("tanh", "relu"), "gaussian")]
each_case = pytest.mark.parametrize(("activation", "likelihood"), CASES)


def expected(network, x):
    """Predictors, and what exported modules predict: of ordered classes their probabilities."""
    eta, likelihood = network.predictor(x), network.known_likelihood()
    if likelihood.ordered:
        return eta, likelihood.class_probabilities(eta)
    return eta, likelihood.mean(eta)[:, : eta.shape[1] // likelihood.n_predictors]


def close(found, right):
    np.testing.assert_allclose(found, right, rtol=1e-6, atol=1e-9)


@each_case
def test_onnx_predicts_the_same(make_network, make_rows, activation, likelihood):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    network = make_network(likelihood, activation)
    x = make_rows(network)
    session = runtime.InferenceSession(to_onnx(network).SerializeToString())
    eta, response = session.run(["predictor", "response"], {"x": x})
    close(eta, expected(network, x)[0])
    close(response, expected(network, x)[1])


def test_onnx_keeps_the_names(make_network, tmp_path):
    onnx = pytest.importorskip("onnx")
    network = make_network()
    to_onnx(network, tmp_path / "network.onnx")
    model = onnx.load(tmp_path / "network.onnx")
    properties = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert tuple(properties["columns"]) == network.scale.names


@each_case
def test_torch_predicts_the_same(make_network, make_rows, activation, likelihood):
    torch = pytest.importorskip("torch")
    network = make_network(likelihood, activation)
    x = make_rows(network)
    module = to_torch(network)
    with torch.no_grad():
        close(module.predictor(torch.tensor(x)).numpy(), expected(network, x)[0])
        close(module(torch.tensor(x)).numpy(), expected(network, x)[1])


@each_case
def test_python_source_predicts_the_same_on_its_own(
    make_network, make_rows, activation, likelihood, tmp_path
):
    network = make_network(likelihood, activation)
    x = make_rows(network)
    (tmp_path / "network.py").write_text(to_python(network), encoding="utf-8")
    program = (
        "import json, sys, network\n"
        "rows = json.load(sys.stdin)\n"
        "print(json.dumps([[network.predictor(row) for row in rows],\n"
        "                  [network.predict(row) for row in rows]]))"
    )
    # -S leaves site-packages out: nothing but the standard library can be imported.
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        input=json.dumps(x.tolist()),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    eta, response = json.loads(done.stdout)
    close(eta, expected(network, x)[0])
    close(response, expected(network, x)[1])


def test_python_source_keeps_the_names_exactly(make_network):
    network = make_network()
    module: dict = {}
    exec(to_python(network), module)
    assert tuple(module["COLUMNS"]) == network.scale.names


def test_python_source_predicts_by_name(make_network, make_rows):
    network = make_network("categorical")
    x = make_rows(network)[0]
    module: dict = {}
    exec(to_python(network), module)
    named = module["predict"](dict(zip(network.scale.names, x, strict=True)))
    assert named == module["predict"](list(x))


@pytest.mark.parametrize("activation", families.activations())
def test_python_source_makes_nothing_of_missing_values(activation):
    net = Architecture(2, (3,), 1, input_skip=False, activation=activation)
    network = Posterior.initialise(net, np.random.default_rng(0)).median(0.0)
    module: dict = {}
    exec(to_python(network), module)
    x = [math.nan, 1.0]
    np.testing.assert_array_equal(network.predictor(np.array([x])), [[math.nan]])
    np.testing.assert_array_equal(module["predictor"](x), [math.nan])


def test_python_source_wants_all_covariates(make_network):
    module: dict = {}
    exec(to_python(make_network()), module)
    with pytest.raises(ValueError, match="Got 1 values"):
        module["predict"]([1.0])


def evaluated(lines, names, outputs, x):
    """Predictors and responses of one row; ``lines`` are Python but for their names."""
    known = dict(zip(names, map(float, x), strict=True))
    known |= {"exp": math.exp, "tanh": math.tanh, "max": max, "min": min}
    known["leaky_relu"] = lambda z, slope: z if z > 0 else slope * z
    for left, right in lines:
        known[left] = eval(right, {"__builtins__": {}}, known)
    return [[known[f"{kind}_{output}"] for output in outputs] for kind in ("eta", "response")]


def keys_of(texts, prefix):
    return {text: f"{prefix}{number}" for number, text in enumerate(texts)}


def text_lines(network):
    """The text formula with its quoted names made Python names."""
    quoted = re.compile(r"`((?:[^`]|``)*)`")
    plain = lambda name: re.sub(r"[\n\x00\x1b]", " ", name)  # noqa: E731
    names = keys_of(map(plain, network.scale.names), "x")
    outputs = keys_of(map(plain, network.scale.outputs), "y")
    both = names | outputs
    text = quoted.sub(lambda match: both[match[1].replace("``", "`")], to_text(network))
    text = re.sub(r"eta\((y\d)\)", r"eta_\1", text)
    text = re.sub(r"^[PE]\((y\d)\)", r"response_\1", text, flags=re.MULTILINE)
    return [line.split(" = ") for line in text.splitlines()], names.values(), outputs.values()


@each_case
def test_the_formula_predicts_the_same(make_network, make_rows, activation, likelihood):
    network = make_network(likelihood, activation)
    x = make_rows(network)
    lines, names, outputs = text_lines(network)
    found = np.array([evaluated(lines, names, outputs, row) for row in x])
    close(found[:, 0], network.predictor(x))
    close(found[:, 1], network.known_likelihood().mean(network.predictor(x)))


def latex_lines(network):
    """The LaTeX formula rewritten as Python."""
    body = to_latex(network).removeprefix("\\begin{align*}\n").removesuffix("\n\\end{align*}")
    texts = list(dict.fromkeys(re.findall(r"\\text\{((?:\\[{}]|\\\w+\{\}|[^{}])*)\}", body)))
    keys = keys_of(texts, "t")
    for text in sorted(texts, key=len, reverse=True):
        body = body.replace(rf"\text{{{text}}}", keys[text])
    rules = [
        (r"h_\{(\d+),(\d+)\}", r"h\1_\2"),
        (r"\\eta_\{(t\d+)\}", r"eta_\1"),
        (r"[PE]\\left\((t\d+)\\right\) &=", r"response_\1 &="),
        (r"\\operatorname\{LeakyReLU\}_\{([\d.]+)\}\\left\((.*)\\right\)", r"leaky_relu(\2, \1)"),
        (r"\\operatorname\{sigmoid\}\\left\((.*)\\right\)", r"1/(1 + exp(-(\1)))"),
        (r" \\times 10\^\{(-?\d+)\}", r"e\1"),
        (r"e\^\{([^{}]*)\}", r"exp(\1)"),
        (r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)"),
        (r"\\(max|min|tanh)", r"\1"),
        (r"\\left|\\right", ""),
        (r"\\,", "*"),
    ]
    for pattern, replacement in rules:
        body = re.sub(pattern, replacement, body)
    body = body.replace(")(1 +", ")*(1 +")
    return [line.split(" &= ") for line in body.split(" \\\\\n")], keys


@each_case
def test_the_latex_formula_predicts_the_same(make_network, make_rows, activation, likelihood):
    network = make_network(likelihood, activation)
    x = make_rows(network)
    lines, keys = latex_lines(network)
    from islab.export.formula import _latex_name

    place = {rf"\text{{{text}}}": key for text, key in keys.items()}
    names = [place.get(_latex_name(name), "unused") for name in network.scale.names]
    outputs = [place[_latex_name(name)] for name in network.scale.outputs]
    found = np.array([evaluated(lines, names, outputs, row) for row in x])
    close(found[:, 0], network.predictor(x))
    close(found[:, 1], network.known_likelihood().mean(network.predictor(x)))


def test_latex_escapes_what_tex_would_read(make_network):
    latex = to_latex(make_network("categorical"))
    assert latex.count(r"\end{align*}") == 1
    assert r"\textbackslash{}end\{align*\}" in latex
    assert r"\$\textbackslash{}alpha\_1\textasciicircum{}2\$ \& 50\% \#tag" in latex


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ('5" pipe', r"\text{5'' pipe}"),
        ("Ås é", r"\text{\r{A}s \'{e}}"),
        ("\N{GREEK SMALL LETTER SIGMA} in µm", r"\text{\ensuremath{\sigma} in \ensuremath{\mu}m}"),
        ("\N{PILE OF POO} x", r"\text{[U+1F4A9] x}"),
        ("身長", r"\text{[U+8EAB][U+9577]}"),
    ],
)
def test_latex_spells_names_in_ascii_that_every_latex_knows(name, written):
    from islab.export.formula import _latex_name

    assert _latex_name(name) == written


def test_digits_round_the_numbers(make_network):
    numbers = re.findall(r"(?<![\w_])\d+\.\d+", to_text(make_network(), digits=2))
    assert max(len(n.replace(".", "").lstrip("0")) for n in numbers) <= 2


@pytest.mark.parametrize("form", [to_text, to_latex, to_python])
def test_a_network_without_paths_names_no_unit(make_network, form):
    network = make_network(threshold=0.999)
    assert not re.search(r"h\d_|h_\{|\bx\[", form(network))


def test_a_network_without_paths_predicts_its_bias_in_onnx(make_network, make_rows):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    network = make_network("bernoulli", threshold=0.999)
    x = make_rows(network)
    session = runtime.InferenceSession(to_onnx(network).SerializeToString())
    close(session.run(["response"], {"x": x})[0], expected(network, x)[1])
