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


def test_names_of_equal_models_do_not_overlap_and_the_best_are_joined(draw):
    series = {name: [(1, 50, 50, 50)] for name in ("first", "second", "third")}
    sizes = {"a": [(1, 50, 50, 50)], "b": [(3, 70, 68, 72)], "c": [(4, 60, 60, 60)]}
    axes, size = draw(("ms", "accuracy", series), ("MB", "accuracy", sizes), front=True)
    # The boxes without the threads to the points may share a pixel.
    first, second, third = (Text.get_window_extent(text) for text in axes.texts)
    assert first.y1 < second.y0 + 1
    assert second.y1 < third.y0 + 1
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
    assert [text.get_text() for text in axes.texts] == ["a 40.0", "b 40.0"]
