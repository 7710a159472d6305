"""Rows, chart and table of a benchmark, by hand."""

import pytest
from fake_worker import MODEL, candidate
from PIL import Image

from keras_gmlp.benchmark import report
from keras_gmlp.benchmark.measuring import Result
from keras_gmlp.benchmark.report import COLUMNS, busy, to_rows


def test_rows_by_hand():
    def result(name, milliseconds, sizes, threads=1):
        found = Result(candidate(name, threads, sizes), cold_start=2.0)
        for size in sizes:
            seconds = [size * value / 1000 for value in milliseconds]
            found.bursts[size] = [{"seconds": seconds, "cores": 0.5}] * 2
            found.peaks[size] = 100.0
        return found

    products = [result("product-numpy", [0.1], [100]), result("product-torch", [0.05], [100])]
    results = [
        *products,
        result("tflite_float32", [3, 4, 5], (1, 10)),
        result("tflite", [2], (1, 10)),
        result("onnx", [8], (1,), threads=2),
    ]
    rows = to_rows(MODEL, results, 0.05)
    assert all(tuple(row) == COLUMNS for row in rows)
    table = {(row["candidate"], row["batch"]): row for row in rows}
    # 2 x 100^3 operations in 10 and in 5 ms; the faster is the limit.
    limits = [table[name, ""]["gflops"] for name in ("product-numpy", "product-torch")]
    assert limits == [0.2, 0.4]
    one, ten = table["tflite_float32", 1], table["tflite_float32", 10]
    assert (one["milliseconds"], one["first_quartile"], one["third_quartile"]) == (4, 3.25, 4.75)
    assert (one["images_per_second"], ten["images_per_second"]) == (250, 250)
    assert (one["gflops"], one["share_of_limit"]) == (0.5, 1.25)  # 2 MFLOPs in 4 ms
    assert (one["ratio"], table["tflite", 1]["ratio"]) == (2, 1)
    assert (table["tflite", 1]["gflops"], table["tflite", 1]["share_of_limit"]) == ("", "")
    assert (table["onnx", 1]["ratio"], table["onnx", 1]["share_of_limit"]) == (1, "")
    assert (one["calls"], one["cores_used"], one["peak_megabytes"]) == (6, 0.5, 100)
    assert (one["others_share"], one["product_spread"], one["busy"]) == (0.05, 0, "no")


def test_difference_of_the_logits_by_hand():
    found = {
        "tflite": [1.0, 2.5],
        "keras-jax": None,  # it failed
        "keras-torch": [1.0, 2.0],
        "keras-tensorflow": [1.25, 2.0],
        "timm": [7.0, 7.0],
        "product-numpy": None,
    }
    one = {"seconds": [0.001], "cores": 1.0}
    results = [
        Result(candidate(name, sizes=(1,)), 1.0, logits, {1: 1.0}, {1: [one]})
        for name, logits in found.items()
    ]
    rows = {row["candidate"]: row for row in to_rows(MODEL, results, None)}
    assert {name: row["logit_difference"] for name, row in rows.items()} == {
        "tflite": 0.5,
        "keras-jax": "",
        "keras-torch": 0,
        "keras-tensorflow": 0.25,
        "timm": "",
        "product-numpy": "",
    }


def test_spread_of_the_products_is_of_the_steadiest():
    def product(name, threads, milliseconds):
        bursts = {100: [{"seconds": milliseconds, "cores": threads}]}
        return Result(candidate(name, threads, (100,)), bursts=bursts, peaks={100: 1.0})

    results = [
        product("product-numpy", 1, [9, 10, 11]),  # the middle half from 9.5 to 10.5: a tenth
        product("product-torch", 1, [5, 10, 15]),  # a half
        product("product-numpy", 2, [8, 10, 12]),  # a fifth
        product("product-torch", 2, [10, 10, 10, 30, 30]),  # two: 10 to 30
    ]
    assert {row["product_spread"] for row in to_rows(MODEL, results, 0.0)} == {0.2}


def test_busy():
    figures = {(0.05, 0.02): "no", (0.11, 0.02): "yes", (None, 0.2): "yes", (None, 0.02): "unknown"}
    assert {pair: busy(*pair) for pair in figures} == figures


def test_chart_and_report(tmp_path, saved_figures):
    seconds = [{"seconds": [0.001, 0.002], "cores": 1.0}]
    peaks, bursts = {1: 50.0, 4: 60.0}, {1: seconds, 4: seconds}
    result = Result(candidate("tflite"), 0.2, [1.0], peaks, bursts)
    failed = [Result(candidate("onnx", threads), error="No module") for threads in (1, 2)]
    rows = to_rows(MODEL, [result, *failed], 0.5)
    report.draw_bars(rows[:2], tmp_path / "chart.png")
    with Image.open(tmp_path / "chart.png") as image:
        assert min(image.size) > 100
    one, four = (axes.patches for axes in saved_figures[0].axes)
    assert [bar.get_width() for bar in (*one, *four)] == pytest.approx([1.5, 1.5 / 4])  # an image
    text = report.to_markdown([MODEL], rows, "apps/benchmark.py a")
    assert "Measured with `apps/benchmark.py a`." in text
    assert (
        "The machine was not quiet, so the figures are not reliable: other processes took 50 % of "
        in text
    )
    assert "| TFLite, 8-bit weights |         1.5 | 1.25 to 1.75 |  1.00 |" in text
    assert "2,667 | 2,286 to 3,200 |" in text  # images a second, 4 in 1.5 (1.75 to 1.25) ms
    assert "- `onnx`, threads 1 and 2: failed: No module" in text
