"""The network as an ONNX model."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.dependencies import needed
from islab.core.sparse import SparseNetwork
from islab.io.files import replacing

OPSET = 17
IR_VERSION = 9


def to_onnx(network: SparseNetwork, path: str | PathLike[str] | None = None) -> Any:
    """An ``onnx.ModelProto``, written to ``path`` if one is given.

    Its input ``x`` is (rows, covariates) in float64 and in the user's units; its outputs are
    ``predictor`` and ``response``, both (rows, outputs); of ordered classes the response is the
    probability of each. The names of covariates and outputs are in its metadata as JSON lists.
    """
    onnx = needed("onnx", "An ONNX model")
    graph = _Graph(onnx)
    likelihood = network.known_likelihood()
    response = likelihood.onnx(graph, graph.predictor(network))
    graph.node("Identity", [response], "response")
    float64 = onnx.TensorProto.DOUBLE
    outputs = network.scale.outputs
    predicted = likelihood.response_names(outputs)
    shapes = {"predictor": len(outputs), "response": len(predicted)}
    value = onnx.helper.make_tensor_value_info
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "islab",
            [value("x", float64, ["rows", network.n_covariates])],
            [value(name, float64, ["rows", size]) for name, size in shapes.items()],
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="islab",
    )
    names = {"covariates": network.scale.names, "outputs": outputs}
    if predicted != outputs:
        names["responses"] = predicted
    onnx.helper.set_model_props(model, {key: json.dumps(list(v)) for key, v in names.items()})
    onnx.checker.check_model(model)
    if path is not None:
        with replacing(Path(path)) as file:
            file.write(model.SerializeToString())
    return model


class _Graph:
    """Nodes and constants of an ONNX graph under construction; values go by their names."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, operator: str, inputs: list[str], name: str = "", **attributes: Any) -> str:
        """Adds a node and gives the name of its value."""
        name = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        """Adds a constant and gives its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def predictor(self, network: SparseNetwork) -> str:
        """The network from its input ``x`` to ``predictor``."""
        shape, scale, used = network.architecture, network.scale, network.covariates
        columns = self.node("Gather", ["x", self.constant(used.astype(np.int64))], axis=1)
        columns = self.node("Sub", [columns, self.constant(scale.x_center[used])])
        columns = self.node("Div", [columns, self.constant(scale.x_scale[used])])
        flat = network.mean_weights()
        value = ""
        for layer, unit_numbers in enumerate(shape.units):
            parts = []
            covariates = shape.block(layer, "covariate")
            if covariates is not None:
                parts.append(self._product(columns, covariates.view(flat)))
            if layer:
                hidden = families.activation(shape.activation).onnx(self, value)
                parts.append(self._product(hidden, shape.hidden_block(layer).view(flat)))
            value = self.constant(network.bias_mu[unit_numbers])
            for part in parts:
                value = self.node("Add", [part, value])
        value = self.node("Mul", [value, self.constant(scale.y_scale)])
        return self.node("Add", [value, self.constant(scale.y_center)], "predictor")

    def _product(self, value: str, weights: NDArray[np.floating]) -> str:
        return self.node("MatMul", [value, self.constant(np.ascontiguousarray(weights.T))])
