"""The model as an ONNX graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from islab.core.dependencies import needed
from islab.core.expressions import MISSING_TEXT, Cell, Expression, Lookup, Symbol, call, spell
from islab.core.families.spelling import CountShares
from islab.export.portable import NEWTON_STEPS, Portable, portable
from islab.io.files import replacing

OPSET, ML_OPSET, IR_VERSION = 17, 2, 9
MATRIX = "x"
RESERVED = ("predictor", "response", "sd", "lower", "upper")
OPERATORS = {
    **{"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "exp": "Exp", "log": "Log", "sqrt": "Sqrt"},
    **{"abs": "Abs", "floor": "Floor", "sin": "Sin", "cos": "Cos", "largest": "Max"},
    **{"greater": "Greater", "missing": "IsNaN", "where": "Where"},
}


def to_onnx(
    source: Any,
    path: str | Path | None = None,
    *,
    model: str | None = None,
    n_draws: int | None = None,
    level: float | None = 0.9,
) -> Any:
    """An ``onnx.ModelProto`` that predicts rows of the table, written to ``path`` if given.

    A model of a data frame has an input (rows, 1) for each column that it uses, with the column's
    name: text for categories, in which "(missing)" is a missing value, and float64 for others, in
    which NaN is one; dates are days since 1970. Others have one input ``x`` (rows, columns).

    Outputs are ``response`` (rows, outputs), which for classes is that of ``predict_proba``; of one
    network ``predictor``; with draws ``lower`` and ``upper`` and, of numbers, ``sd``. Columns,
    outputs, and classes or responses are in the metadata as JSON lists.

    Parameters
    ----------
    source : fitted estimator, or SparseNetwork
        The columns of a network are its covariates.
    path : path, optional
    model : {"full", "median"}, optional
        Average over draws of the full posterior, or the readable network.
    n_draws : int, optional
        Draws to hold, 100 of the full posterior if not given; as many as the model has
        (``model.n_draws``) give the numbers of ``predict``. The readable network is held at the
        mean of its weights, unless draws of these are asked for.
    level : float, optional
        Of the interval; None for a graph without one.
    """
    onnx = needed("onnx", "An ONNX model")
    if level is not None and not 0 < level < 1:
        raise ValueError(f"Got level={level!r}, expected a number between 0 and 1, or None.")
    content = portable(source, model, n_draws)
    graph = _Graph(onnx, content)
    _outputs(content, graph, level)
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "islab", graph.inputs, graph.outputs, graph.constants),
        opset_imports=[
            onnx.helper.make_opsetid("", OPSET),
            onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET),
        ],
        ir_version=IR_VERSION,
        producer_name="islab",
    )
    lists = {"columns": graph.columns, "outputs": content.outputs, "classes": content.classes}
    lists["responses"] = content.results if content.classes is None else None
    known = {key: json.dumps(list(value)) for key, value in lists.items() if value is not None}
    onnx.helper.set_model_props(proto, known)
    onnx.checker.check_model(proto)
    if path is not None:
        with replacing(path) as file:
            file.write(proto.SerializeToString())
    return proto


def _outputs(content: Portable, graph: _Graph, level: float | None) -> None:
    """From the inputs to all that is predicted."""
    eta = graph.predictors(content)  # (draws, rows, outputs)
    if content.n_draws == 1:
        graph.output("predictor", graph.node("Squeeze", eta, graph.whole([0])))
    etas, noise = _given(content)
    speller = _Onnx(graph, {})
    for number, each in enumerate(etas):
        speller.symbols[each.name] = graph.node("Gather", eta, graph.whole(number), axis=2)
    for each, own in zip(noise, content.noise.T, strict=True):
        speller.symbols[each.name] = graph.constant(own[:, None])
    found = [
        speller.let(f"response{number}", each)
        for number, each in enumerate(content.responses(etas, noise, speller.let))
    ]
    draws = graph.stacked([spell(each, speller) for each in found])
    mean = graph.node("ReduceMean", draws, axes=[0], keepdims=0)
    response = mean
    if content.two_classes:
        other = graph.node("Sub", graph.number(1.0), mean)
        response = graph.node("Concat", other, mean, axis=1)
    graph.output("response", response)
    if content.n_draws == 1:
        return
    if content.classes is not None:
        if level is not None:
            _class_interval(content, graph, draws, level)
        return
    targets = list(zip(found, content.family.noise_expressions(etas, noise), strict=True))
    variance = graph.stacked(
        [spell(content.family.variance_expression(*target), speller) for target in targets]
    )
    error = graph.node("Sub", draws, mean)
    variance = graph.node("Add", variance, graph.node("Mul", error, error))
    sd = graph.node("Sqrt", graph.node("ReduceMean", variance, axes=[0], keepdims=0))
    graph.output("sd", sd)
    if level is not None and content.family.standard_noise is not None:
        root = graph.stacked([spell(call("sqrt", own[0]), speller) for _, own in targets])
        _number_interval(content, graph, draws, root, level)
    shares = [content.family.count_shares(*target) for target in targets]
    counted = [each for each in shares if each is not None]
    if level is not None and counted:
        _count_interval(graph, speller, counted, level)


def _given(content: Portable) -> tuple[list[Symbol], list[Symbol]]:
    """The predictors and the noise of each draw."""
    etas = [Symbol(f"eta{number}") for number in range(len(content.outputs))]
    return etas, [Symbol(f"noise{number}") for number in range(content.noise.shape[1])]


def _class_interval(content: Portable, graph: _Graph, draws: str, level: float) -> None:
    """Quantiles of drawn probabilities, between two draws on the line that joins them."""
    n = content.n_draws
    sorted_ = graph.node("TopK", draws, graph.whole([n]), outputs=2, axis=0, largest=0)
    for name, share in (("lower", (1 - level) / 2), ("upper", (1 + level) / 2)):
        place = share * (n - 1)
        first = int(place)
        below = graph.node("Gather", sorted_, graph.whole(first), axis=0)
        above = graph.node("Gather", sorted_, graph.whole(min(first + 1, n - 1)), axis=0)
        step = graph.node("Mul", graph.node("Sub", above, below), graph.number(place - first))
        graph.output(name, graph.node("Add", below, step))


def _number_interval(
    content: Portable, graph: _Graph, draws: str, spread: str, level: float
) -> None:
    """Quantiles of an equal mixture by Newton's steps, kept in a bracket that shrinks."""
    noise = content.family.standard_noise
    assert noise is not None
    n = content.n_draws
    standard = graph.constant(content.standard_draws()[:, None, None])
    sample = graph.node("Mul", spread, standard)
    starts = graph.node(
        "TopK", graph.node("Add", draws, sample), graph.whole([n]), outputs=2, axis=0, largest=0
    )
    for name, share in (("lower", (1 - level) / 2), ("upper", (1 + level) / 2)):
        reach = graph.number(noise.quantile(share))
        ends = graph.node("Add", draws, graph.node("Mul", reach, spread))
        low = graph.node("ReduceMin", ends, axes=[0], keepdims=0)
        high = graph.node("ReduceMax", ends, axes=[0], keepdims=0)
        x = graph.node("Gather", starts, graph.whole(int(share * n)), axis=0)
        for _ in range(NEWTON_STEPS):
            x = graph.kept_between(low, x, high)
            z = graph.node("Div", graph.node("Sub", x, draws), spread)
            speller = _Onnx(graph, {"z": z, "s": spread})
            below = graph.node(
                "ReduceMean", spell(noise.share(Symbol("z")), speller), axes=[0], keepdims=0
            )
            density = graph.node(
                "ReduceMean",
                spell(noise.density(Symbol("z")) / Symbol("s"), speller),
                axes=[0],
                keepdims=0,
            )
            excess = graph.node("Sub", below, graph.number(share))
            short = graph.node("Less", excess, graph.number(0.0))
            low = graph.node("Where", short, x, low)
            high = graph.node("Where", short, high, x)
            x = graph.node("Sub", x, graph.node("Div", excess, density))
        graph.output(name, graph.kept_between(low, x, high))


def _count_interval(graph: _Graph, speller: _Onnx, shares: list[CountShares], level: float) -> None:
    """The counts at which the shares of an equal mixture, added up from 0, reach two levels."""
    any_row = spell(shares[0].start, speller)

    def all_of(parts: list[Expression]) -> str:
        """(draws, rows, outputs)"""
        return graph.stacked([graph.everywhere(spell(part, speller), any_row) for part in parts])

    start, ratio = all_of([s.start for s in shares]), all_of([s.ratio for s in shares])
    sizes = [s.size for s in shares if s.size is not None]
    parts = [s.part for s in shares if s.part is not None]
    size = all_of(sizes) if sizes else None
    part = all_of(parts) if parts else None
    nothing = graph.node("Mul", graph.mean(start), graph.number(0.0))
    reached = nothing
    if part is not None:
        reached = graph.mean(graph.node("Sub", graph.number(1.0), part))
    levels = {"lower": (1 - level) / 2, "upper": (1 + level) / 2}

    def step(k: str, known: list[str]) -> tuple[str, list[str]]:
        logarithm, reached, *ends = known
        share = graph.node("Exp", logarithm)
        share = share if part is None else graph.node("Mul", part, share)
        reached = graph.node("Add", reached, graph.mean(share))
        short = [graph.node("Less", reached, graph.number(each)) for each in levels.values()]
        more = [graph.node("Add", end, graph.number(1.0)) for end in ends]
        ends = [graph.node("Where", *each) for each in zip(short, more, ends, strict=True)]
        following = graph.node("Log", graph.node("Add", k, graph.number(1.0)))
        change = graph.node("Sub", ratio, following)
        if size is not None:
            change = graph.node("Add", change, graph.node("Log", graph.node("Add", k, size)))
        left = graph.node("Cast", short[-1], to=graph.onnx.TensorProto.INT64)
        left = graph.node("ReduceSum", left, keepdims=0)
        going = graph.node("Greater", left, graph.whole(0))
        return going, [graph.node("Add", logarithm, change), reached, *ends]

    found = graph.repeated(step, [start, reached, nothing, nothing])
    for name, value in zip(levels, found[2:], strict=True):
        graph.output(name, value)


class _Graph:
    """Nodes, inputs, outputs and constants under construction; values go by their names."""

    def __init__(self, onnx: Any, content: Portable) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self._before = 0  # nodes of other graphs, whose names are taken
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._values: dict[str, str] = {}  # of columns
        # A model that uses no column has the matrix too, whose rows are counted.
        self._named = content.named and bool(content.cells)
        self.columns: list[str] = [] if self._named else list(content.columns)
        if not self._named:
            shape = ["rows", len(content.columns)]
            self._input(MATRIX, onnx.TensorProto.DOUBLE, shape)

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Adds a node and gives the name of its first value."""
        place = self._before + len(self.nodes)
        names = [f"islab.{place}.{number}" for number in range(outputs)]
        domain = "ai.onnx.ml" if operator == "LabelEncoder" else ""
        self.nodes.append(
            self.onnx.helper.make_node(operator, list(inputs), names, domain=domain, **attributes)
        )
        return names[0]

    def constant(self, value: Any) -> str:
        """Adds a constant and gives its name."""
        name = f"islab.constant.{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.float64(value))

    def whole(self, value: Any) -> str:
        return self.constant(np.array(value, dtype=np.int64))

    def mean(self, draws: str) -> str:
        """Of all draws, without their axis."""
        return self.node("ReduceMean", draws, axes=[0], keepdims=0)

    def everywhere(self, value: str, like: str) -> str:
        """A value of each draw or row in the shape of another, (draws, rows)."""
        return self.node("Add", value, self.node("Mul", like, self.number(0.0)))

    def repeated(
        self, step: Callable[[str, list[str]], tuple[str, list[str]]], values: list[str]
    ) -> list[str]:
        """Values after as many steps as it takes; ``step`` adds the nodes of one.

        It takes the number of the step, from 0, and the values; and gives whether to go on, and
        the next ones.
        """
        make, kinds = self.onnx.helper, self.onnx.TensorProto
        outer, self.nodes = self.nodes, []
        self._before += len(outer)
        inside = [f"islab.known.{number}" for number in range(len(values))]
        going, found = step(self.node("Cast", "islab.step", to=kinds.DOUBLE), inside)
        body, self.nodes = self.nodes, outer
        self._before += len(body) - len(outer)
        given = [
            make.make_tensor_value_info("islab.step", kinds.INT64, []),
            make.make_tensor_value_info("islab.going", kinds.BOOL, []),
            *(make.make_tensor_value_info(name, kinds.DOUBLE, None) for name in inside),
        ]
        made = [
            make.make_tensor_value_info(going, kinds.BOOL, []),
            *(make.make_tensor_value_info(name, kinds.DOUBLE, None) for name in found),
        ]
        ends = [f"islab.end.{number}" for number in range(len(values))]
        always = self.constant(np.array(True))
        graph = make.make_graph(body, "islab_step", given, made)
        self.nodes.append(make.make_node("Loop", ["", always, *values], ends, body=graph))
        return ends

    def output(self, name: str, value: str) -> None:
        """Gives a value out as (rows, outputs)."""
        made = self.onnx.helper.make_node("Identity", [value], [name])
        self.nodes.append(made)
        info = self.onnx.helper.make_tensor_value_info
        self.outputs.append(info(name, self.onnx.TensorProto.DOUBLE, ["rows", None]))

    def stacked(self, parts: list[str]) -> str:
        """Values (draws, rows) of each output as (draws, rows, outputs)."""
        wide = [self.node("Unsqueeze", part, self.whole([2])) for part in parts]
        return self.node("Concat", *wide, axis=2)

    def kept_between(self, low: str, x: str, high: str) -> str:
        """The value if it is inside, else the middle; what is no number is not."""
        inside = self.node(
            "And", self.node("GreaterOrEqual", x, low), self.node("LessOrEqual", x, high)
        )
        middle = self.node("Mul", self.node("Add", low, high), self.number(0.5))
        return self.node("Where", inside, x, middle)

    def column(self, name: str, place: int, text: bool) -> str:
        """Cells of a column, (rows, 1)."""
        if not self._named:
            return self.node("Gather", MATRIX, self.whole([place]), axis=1)
        if name not in self._values:
            kind = self.onnx.TensorProto.STRING if text else self.onnx.TensorProto.DOUBLE
            taken = {*self._values.values(), *RESERVED}
            own = name or "column"
            while own in taken:
                own += "_"
            self._input(own, kind, ["rows", 1])
            self._values[name] = own
            self.columns.append(name)
        return self._values[name]

    def _input(self, name: str, kind: int, shape: list[Any]) -> None:
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))

    def predictors(self, content: Portable) -> str:
        """Predictors under all draws, (draws, rows, outputs)."""
        speller = _Onnx(self, {}, content.columns)
        columns = [spell(each, speller) for each in content.covariates.values()]
        offset = None if content.offset is None else spell(content.offset, speller)
        x = self.node("Concat", *columns, axis=1) if columns else None
        value = ""
        for number, layer in enumerate(content.layers):
            # A product without covariates would be of uninitialised memory.
            parts = [self._zeros() if x is None else self._product(x, layer.covariate)]
            if number and layer.hidden.size:
                activation = content.activations[number - 1]
                hidden = spell(activation.expression(Symbol("z")), _Onnx(self, {"z": value}))
                parts.append(self._product(hidden, layer.hidden))
            value = self.constant(layer.bias[:, None])
            for part in parts:
                value = self.node("Add", part, value)
        if offset is None:
            return value
        first = np.arange(len(content.outputs)) < content.n_targets
        return self.node("Add", value, self.node("Mul", offset, self.constant(first.astype(float))))

    def _zeros(self) -> str:
        """As many as there are rows, (rows, 1)."""
        shape = self.node("Shape", self.inputs[0].name)
        first = self.node("Gather", shape, self.whole([0]))
        return self.node(
            "Expand", self.number(0.0), self.node("Concat", first, self.whole([1]), axis=0)
        )

    def _product(self, values: str, weights: Any) -> str:
        transposed = np.ascontiguousarray(np.swapaxes(weights, 1, 2))
        return self.node("MatMul", values, self.constant(transposed))


class _Onnx:
    """Spells expressions as nodes of a graph."""

    def __init__(
        self, graph: _Graph, symbols: dict[str, str], columns: tuple[str, ...] = ()
    ) -> None:
        self.graph, self.symbols, self.columns = graph, symbols, columns

    def let(self, name: str, expression: Expression) -> Expression:
        self.symbols[name] = spell(expression, self)
        return Symbol(name)

    def constant(self, value: float) -> str:
        return self.graph.number(value)

    def symbol(self, name: str) -> str:
        return self.symbols[name]

    def cell(self, cell: Cell) -> str:
        return self._column(cell.column, text=False)

    def lookup(self, lookup: Lookup) -> str:
        known = {**dict(lookup.values), MISSING_TEXT: lookup.missing}
        # Codes rather than the numbers themselves, which the operator would hold in float32.
        codes = self.graph.node(
            "LabelEncoder",
            self._column(lookup.column, text=True),
            keys_strings=list(known),
            values_int64s=list(range(len(known))),
            default_int64=len(known),
        )
        table = self.graph.constant(np.array([*known.values(), lookup.default]))
        return self.graph.node("Gather", table, codes)

    def _column(self, name: str, text: bool) -> str:
        place = self.columns.index(name) if name in self.columns else 0
        return self.graph.column(name, place, text)

    def call(self, function: str, arguments: list[str]) -> str:
        if function == "largest" and len(arguments) == 2:
            # Max may drop NaN.
            first, second = arguments
            return self.graph.node(
                "Where", self.graph.node("Greater", second, first), second, first
            )
        return self.graph.node(OPERATORS[function], *arguments)
