"""What a reader sees in the charts of a comparison: right values, names that do not overlap."""

import pytest
from matplotlib.text import Text

from keras_gmlp.comparison.charts import draw_series


@pytest.fixture
def draw(saved_figures, tmp_path):
    """Draws charts and returns their axes, laid out as in the file."""

    def draw(*panels, **options):
        path = draw_series(panels, tmp_path / "chart.png", **options)
        assert path.stat().st_size > 5000
        saved_figures[-1].draw_without_rendering()
        return saved_figures[-1].axes

    return draw


def boxes_of(axes):
    """The box of each text in pixels, without the thread to its point."""
    return {text.get_text(): Text.get_window_extent(text) for text in axes.texts}


def overlapping(boxes):
    """Pairs of texts that share more than the gap between two lines of text."""
    return [
        (one, other)
        for one, a in boxes.items()
        for other, b in boxes.items()
        if one < other
        and min(a.x1, b.x1) > max(a.x0, b.x0)
        and min(a.y1, b.y1) > max(a.y0, b.y0) + 1
    ]


def shift(axes, box, point):
    """Pixels from the height of a point to the middle of its text."""
    return (box.y0 + box.y1) / 2 - axes.transData.transform(point)[1]


def test_names_of_equal_models_do_not_overlap_and_the_best_are_joined(draw):
    series = {name: [(1, 50, 50, 50)] for name in ("first", "second", "third")}
    series["elsewhere"] = [(8, 50, 50, 50)]
    sizes = {"a": [(1, 50, 50, 50)], "b": [(3, 70, 68, 72)], "c": [(4, 60, 60, 60)]}
    axes, size = draw(("ms", "accuracy", series), ("MB", "accuracy", sizes), front=True)
    boxes = boxes_of(axes)
    assert list(boxes) == ["first 50.0", "second 50.0", "third 50.0", "elsewhere 50.0"]
    assert overlapping(boxes) == []
    assert boxes["first 50.0"].y0 < boxes["second 50.0"].y0 < boxes["third 50.0"].y0
    # The group keeps its middle at the points, and a name with room stays level with its own.
    assert shift(axes, boxes["second 50.0"], (1, 50)) == pytest.approx(0, abs=1)
    assert shift(axes, boxes["elsewhere 50.0"], (8, 50)) == pytest.approx(0, abs=1)
    assert size.get_xlabel() == "MB"
    (front,) = [line for line in size.lines if line.get_linestyle() == "--"]
    assert list(front.get_xdata()) == [1, 3]


def test_lines_show_mean_and_range(draw):
    series = {"a": [(1, 20, 10, 30), (2, 40, 30, 50)], "b": [(1, 20, 20, 20), (3, 40, 40, 40)]}
    (axes,) = draw(("epoch", "accuracy", series))
    means, single = axes.lines
    assert (list(means.get_xdata()), list(means.get_ydata())) == ([1, 2], [20, 40])
    assert list(single.get_ydata()) == [20, 40]
    band, _ = axes.collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.round(6)}
    assert corners == {(1, 10), (1, 30), (2, 30), (2, 50)}
    assert list(boxes_of(axes)) == ["a 40.0", "b 40.0"]
    assert overlapping(boxes_of(axes)) == []
