import numpy as np
import pandas as pd
import pytest

from experiments.datasets import load_fer2013


def faces(emotions, seed=0):
    """A table in the challenge's format."""
    pixels = np.random.default_rng(seed).integers(0, 256, (len(emotions), 48 * 48))
    return pd.DataFrame(
        {
            "emotion": emotions,
            "pixels": [" ".join(map(str, row)) for row in pixels],
            "Usage": "Training",
        }
    ), pixels.reshape(-1, 48, 48)


@pytest.fixture
def written(tmp_path):
    def write(frame):
        frame.to_csv(tmp_path / "fer2013.csv", index=False)
        return tmp_path / "fer2013.csv"

    return write


def test_happy_surprised_and_neutral_faces_are_kept(written):
    frame, pixels = faces([0, 3, 5, 6, 4, 3] * 10)
    data = load_fer2013(written(frame))
    kept = frame["emotion"].isin([3, 5, 6]).to_numpy()
    np.testing.assert_array_equal(data.images, pixels[kept])
    assert data.images.dtype == np.uint8
    assert data.labels[:4].tolist() == [0, 1, 2, 0]
    assert data.classes == ("happy", "surprise", "neutral")


def test_a_tenth_of_each_class_is_for_testing(written):
    frame, _ = faces([3] * 50 + [5] * 20 + [6] * 30)
    data = load_fer2013(written(frame))
    assert np.bincount(data.labels[data.test]).tolist() == [5, 2, 3]
    assert sorted([*data.train, *data.test]) == list(range(100))


def test_the_split_is_that_of_the_paper(written):
    from sklearn.model_selection import train_test_split

    frame, _ = faces([3, 5, 6] * 20)
    data = load_fer2013(written(frame))
    theirs = train_test_split(
        np.arange(60), test_size=0.10, random_state=42, stratify=frame["emotion"]
    )
    np.testing.assert_array_equal(data.test, theirs[1])


def test_a_missing_file_is_named_with_where_to_get_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.csv', expected the file fer2013\.csv; try"):
        load_fer2013(tmp_path / "no.csv")


def test_other_columns_are_named(written):
    frame, _ = faces([3, 5, 6])
    with pytest.raises(ValueError, match="with columns emotion, pixels, expected emotion, pixels"):
        load_fer2013(written(frame[["emotion", "pixels"]]))


@pytest.mark.parametrize("pixels", ["1 2 3", " ".join(["256"] * 2304), "x " * 2304])
def test_rows_that_are_no_face_are_named(written, pixels):
    frame, _ = faces([0, 3, 5, 6])
    frame.loc[2, "pixels"] = pixels
    with pytest.raises(ValueError, match="in row 2, expected 2304 numbers from 0 to 255"):
        load_fer2013(written(frame))
