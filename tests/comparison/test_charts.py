"""What the charts of a comparison draw, and where their names stand."""

import pytest
from matplotlib.text import Text

from keras_gmlp.comparison import charts


def test_pareto_front():
    points = [(1, 50), (2, 40), (2, 60), (3, 60), (4, 70)]
    assert charts.pareto(points) == [(1, 50), (2, 60), (4, 70)]


def test_names_give_way_to_one_another_where_they_would_overlap():
    figure, (axes,) = charts._figure()
    axes.set(xlim=(0, 10), ylim=(0, 100))
    labels = [(1, 50, "first", "k"), (1, 50, "second", "k"), (1, 50, "third", "k")]
    charts._label(axes, [*labels, (8, 50, "elsewhere", "k")])
    figure.draw_without_rendering()
    boxes = {text.get_text(): Text.get_window_extent(text) for text in axes.texts}  # no thread
    middle = {name: (box.y0 + box.y1) / 2 for name, box in boxes.items()}
    assert middle["elsewhere"] == pytest.approx(middle["second"], abs=1)  # the group's middle
    assert boxes["first"].y1 < boxes["second"].y0 + 1
    assert boxes["second"].y1 < boxes["third"].y0 + 1


def test_texts_of_one_width_part_only_as_far_as_they_overlap():
    assert charts._spread([(0, 0), (0, 100)], [20, 20], 10) == [0, 100]
    assert charts._spread([(0, 0), (30, 0)], [20, 20], 10) == [0, 0]
    assert charts._spread([(0, 0), (30, 0)], [40, 20], 10) == [-5, 5]
