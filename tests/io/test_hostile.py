"""Files made to do harm, with a hash that fits: the content must be checked for itself."""

import json
import time
import tracemalloc
from copy import deepcopy

import numpy as np
import pytest

import islab
from islab.io.store import DTYPES, NO_HASH, read, to_bytes
from tests.images.nets import classifier, posterior

from .conftest import refused, state_of, write

MOST_MEMORY = 200 * 2**20


@pytest.fixture(scope="module")
def images():
    return classifier(posterior(0))


def put(values, place, value):
    """A copy of nested values with another one at a place such as "params.n_draws"."""
    *path, last = place.split(".")
    changed = inner = deepcopy(values)
    for key in path:
        inner = inner[int(key) if key.isdecimal() else key]
    inner[int(last) if last.isdecimal() else last] = value
    return changed


def altered(model, path, place, value, sparse=True):
    description, arrays = state_of(model, sparse=sparse)
    return write(path, put(json.loads(json.dumps(description)), place, value), arrays)


def refused_cheaply(path):
    """Whether a file is refused within a second and without much memory."""
    tracemalloc.start()
    start = time.process_time()
    try:
        assert refused(path)
        assert time.process_time() - start < 1
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()


# -- sizes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("params.kernel_size", 20_001),
        ("params.hidden_layer_sizes", [4] * 50_000),
        ("image_shape", [1, 2048, 2048]),
        ("image_shape", [2**16, 2**16, 2**16]),
        ("params.n_draws", 10**15),
        ("params.channels", [3, 10**9]),
        ("params.hidden_layer_sizes", [10**6, 10**6]),
        ("classes.values", list(range(200_000))),
    ],
)
def test_small_files_of_images_that_claim_to_be_large_are_refused(
    images, tmp_path, place, value, sparse
):
    refused_cheaply(altered(images, tmp_path / "m", place, value, sparse))


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("size", ["n_outputs", "n_covariates"])
def test_parts_of_images_with_more_outputs_than_arrays_are_refused(images, tmp_path, part, size):
    place = f"network.parts.{part}.architecture.{size}"
    refused_cheaply(altered(images, tmp_path / "m", place, 10**9))


def test_a_file_of_images_does_not_name_millions_of_features(tmp_path):
    model = classifier(posterior(0, shape=(1, 8, 8), channels=(), hidden=()))
    path = altered(model, tmp_path / "m", "image_shape", [1, 2048, 2048])
    refused_cheaply(path)


def test_images_far_larger_than_the_weights_are_refused(tmp_path):
    model = classifier(posterior(0, shape=(1, 8, 8), channels=(1,), stride=1, pool=8192, hidden=()))
    path = altered(model, tmp_path / "m", "image_shape", [1, 8192, 8192], sparse=False)
    refused_cheaply(path)


def test_a_column_with_a_hundred_thousand_levels_is_refused(model, tmp_path, sparse):
    description, arrays = state_of(model, sparse=sparse)
    description = json.loads(json.dumps(description))
    count = 100_000
    column = {
        "kind": "category",
        "name": "c",
        "levels": [str(number) for number in range(count)],
        "shares": [1 / count] * count,
    }
    width = len(arrays["x_scale"]) - 3 + count
    arrays |= {"x_center": np.zeros(width), "x_scale": np.ones(width)}
    path = write(tmp_path / "m", put(description, "columns.variables.2", column), arrays)
    refused_cheaply(path)


def test_a_billion_draws_are_refused(model, tmp_path, sparse):
    refused_cheaply(altered(model, tmp_path / "m", "params.n_draws", 10**15, sparse))


def test_a_network_much_larger_than_its_used_weights_is_refused(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    shape = {**description["architecture"], "hidden": [5000, 5000]}
    units = 10_000 + shape["n_outputs"]
    arrays |= {name: np.zeros(units) for name in ("bias_mu", "bias_sigma")}
    arrays |= {"unit_labels": np.arange(units)}
    refused_cheaply(write(tmp_path / "m", {**description, "architecture": shape}, arrays))


@pytest.mark.parametrize("filling", ["[],", '"",', "0,", '{"a":0},', "[[[[]]]],"])
@pytest.mark.parametrize("size", [15_000_000, 60_000_000])
def test_a_header_of_many_megabytes_is_refused_at_once(tmp_path, filling, size):
    inner = '{"format":"islab","version":1,"x":[' + filling * (size // len(filling)) + "0]}"
    header = json.dumps({"__metadata__": {"islab": inner}}).encode()
    (tmp_path / "m").write_bytes(len(header).to_bytes(8, "little") + header)
    refused_cheaply(tmp_path / "m")


# -- types ----------------------------------------------------------------------------------


def raw(path, header, body=b""):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


@pytest.mark.parametrize("dtype", [[], {}, None, 1, "F16", ["F64"]])
def test_arrays_whose_type_is_not_a_known_word_are_refused(model, tmp_path, dtype):
    model.save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["mu"]["dtype"] = dtype
    assert refused(raw(tmp_path / "m", header, content[8 + length :]))


@pytest.mark.parametrize("value", [[], "text", 3, None, True, [[1, 2]]])
@pytest.mark.parametrize("place", ["params", "columns", "target", "architecture", "chosen"])
def test_parts_that_are_not_objects_are_refused(model, tmp_path, place, value):
    assert refused(altered(model, tmp_path / "m", place, value))


@pytest.mark.parametrize("value", [[], "text", 3, True, {"n_channels": 3, "parts": 4}])
@pytest.mark.parametrize("place", ["params", "network", "classes", "image_shape"])
def test_parts_of_images_that_are_not_objects_are_refused(images, tmp_path, place, value):
    assert refused(altered(images, tmp_path / "m", place, value))


@pytest.mark.parametrize("depth", [10, 900, 5_000])
def test_tuples_in_tuples_are_refused(model, tmp_path, depth):
    nested = '{"tuple":[' * depth + "1" + "]}" * depth
    description, arrays = state_of(model, sparse=True)
    text = json.dumps(put(description, "params.inclusion_init", "HERE"))
    text = text.replace('"HERE"', nested)
    header = {"__metadata__": {"islab": '{"format":"islab","version":1,' + text[1:]}}
    assert refused(raw(tmp_path / "m", header))
    if depth < 20:
        (tmp_path / "n").write_bytes(to_bytes(json.loads(text), arrays))
        assert refused(tmp_path / "n")


@pytest.mark.parametrize("place", ["columns.variables.0.name", "outputs.0", "params.class_weight"])
def test_halves_of_characters_are_refused(model, tmp_path, place):
    assert refused(altered(model, tmp_path / "m", place, "\ud800"))


def test_names_that_stand_twice_in_the_description_are_refused(model, tmp_path):
    model.save(tmp_path / "m", sparse=True)
    content = (tmp_path / "m").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    text = header["__metadata__"]["islab"]
    header["__metadata__"]["islab"] = text[:-1] + ',"seed":1}'
    path = raw(tmp_path / "m", header, content[8 + length :])
    with pytest.raises(ValueError, match="occurs twice"):
        islab.load(path)


def test_arrays_that_overlap_are_refused(model, tmp_path):
    model.save(tmp_path / "m", sparse=True)
    content = (tmp_path / "m").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["sigma"]["data_offsets"] = header["mu"]["data_offsets"]
    assert refused(raw(tmp_path / "m", header, content[8 + length :]))


def test_an_array_that_belongs_to_nothing_is_refused(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    assert refused(write(tmp_path / "m", description, {**arrays, "more": np.zeros(3)}))


# -- values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("target.classes", ["no", "no"]),
        ("target.classes", ["yes", "no"]),
        ("target.classes", [0, "yes"]),
        ("columns.variables.2.levels", ["u", "u", "w"]),
        ("columns.variables.2.shares", [0.5, 0.5, 0.5]),
        ("columns.variables.2.shares", [-0.5, 0.5, 1.0]),
        ("columns.variables.1.name", "a"),
        ("seed", -1),
        ("seed", 2**40),
        ("params.random_state", -1),
        ("params.random_state", 1.5),
        ("params.sparsity", 10**400),
        ("params.class_weight", {"dict": [[0, 1], [0, 2]]}),
        ("params.class_weight", {"dict": [[{"tuple": []}, 1]]}),
        ("n_weights_initial", 0),
        ("elbo", "high"),
    ],
)
def test_nonsense_is_refused(model, tmp_path, place, value):
    assert refused(altered(model, tmp_path / "m", place, value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 7.0),
        ("alpha", -0.1),
        ("sigma", -1.0),
        ("bias_sigma", -1.0),
        ("noise", 0.0),
        ("noise", -1.0),
        ("x_scale", 5e-324),
        ("x_scale", 0.0),
        ("y_scale", 5e-324),
        ("mu", 1e300),
        ("mu", np.inf),
        ("mu", np.nan),
    ],
)
def test_numbers_outside_their_range_are_refused(model, tmp_path, name, value):
    description, arrays = state_of(model, sparse=True)
    wrong = {**arrays, name: np.full_like(arrays[name], value)}
    assert refused(write(tmp_path / "m", description, wrong))


@pytest.mark.parametrize(
    ("place", "value"),
    [("classes.values", [0, 0, 1]), ("classes.values", [2, 1, 0]), ("seed", -1)],
)
def test_nonsense_in_files_of_images_is_refused(images, tmp_path, place, value):
    assert refused(altered(images, tmp_path / "m", place, value))


def test_classes_beyond_64_bits_are_refused_for_what_they_are(images, tmp_path):
    classes = {"type": "int64", "values": [0, 1, 2**63]}
    with pytest.raises(ValueError, match="its classes are too large numbers"):
        islab.load(altered(images, tmp_path / "m", "classes", classes))


def test_optional_parts_of_the_description_have_defaults(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    fewer = {key: value for key, value in description.items() if key not in ("elbo", "chosen")}
    loaded = islab.load(write(tmp_path / "m", fewer, arrays))
    assert (loaded.elbo_, loaded.chosen_) == (None, {})


def test_a_file_of_another_class_is_named(images, model, tmp_path):
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"expected a 'ISLaBImageClassifier'; try islab\.load"):
        type(images).load(tmp_path / "m")


def test_what_is_read_from_a_file_can_be_written(model, tmp_path):
    model.save(tmp_path / "m")
    description, arrays = read(tmp_path / "m")
    again = to_bytes({**description, "sha256": NO_HASH}, arrays)
    assert again == (tmp_path / "m").read_bytes()
    assert {array.dtype for array in arrays.values()} <= {*DTYPES.values()}
