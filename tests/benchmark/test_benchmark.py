"""How fast models run: the arithmetic by hand, the turns with made-up workers."""

import dataclasses
from pathlib import Path

import pytest
from load_app import load_app
from PIL import Image

from keras_gmlp.benchmark import charts, client, files, machine_load, markdown, runtimes
from keras_gmlp.benchmark.candidates import Candidate, candidates
from keras_gmlp.benchmark.client import CandidateError, Worker
from keras_gmlp.benchmark.files import Model, timm_architecture
from keras_gmlp.benchmark.machine_load import Snapshot, machine_ticks, others_share, process_ticks
from keras_gmlp.benchmark.measuring import Result, Schedule, measure
from keras_gmlp.benchmark.report import COLUMNS, busy, spread, to_rows
from keras_gmlp.comparison.flops import random_model

MODEL = Model("a", Path("a.keras"), (8, 8, 3), 10, 1000, 2_000_000, None)


def candidate(name, threads=1, sizes=(1, 4), **order):
    return Candidate(name, threads, order, sizes)


class FakeWorker:
    """Answers at once, and notes in `asked` who was asked for what."""

    cold_start = 1.5
    pid = 0

    def __init__(self, candidate, asked, fails_after=None, megabytes=10):
        self.candidate, self.asked = candidate, asked
        self.fails_after, self.megabytes = fails_after, megabytes
        self.answers = 0
        self.closed = False

    def ask(self, request):
        if self.answers == self.fails_after:
            raise CandidateError("out of luck")
        self.answers += 1
        self.asked.append((self.candidate.name, request["size"], request["calls"]))
        seconds = [0.05 * request["size"]] * request["calls"]
        return {"seconds": seconds, "cores": 1.0, "peak_megabytes": self.megabytes}

    def close(self):
        self.closed = True


def test_spread_by_hand():
    found = spread([1, 2, 3, 4, 9])
    assert (found.first, found.median, found.third) == (2, 3, 4)
    assert found.relative == pytest.approx(2 / 3)
    assert spread([1, 2]).first == pytest.approx(1.25)  # linear between neighbours
    assert spread([5]).third == 5


def test_turns_are_taken_within_each_round():
    asked = []
    ways = [candidate("product-numpy", sizes=(16,)), candidate("a"), candidate("b")]
    plan = Schedule(rounds=2, burst_seconds=0.1)
    results, _ = measure(ways, plan, lambda way: FakeWorker(way, asked))
    one_round = [("product-numpy", 16, 1), ("a", 1, 2), ("b", 1, 2), ("a", 4, 1), ("b", 4, 1)]
    assert asked[-10:] == [*one_round, *one_round]
    warm_up = asked[:-10]
    assert {name for name, *_ in warm_up[:2]} == {"product-numpy"}
    assert len(warm_up) == 2 * (1 + 2 + 2)  # a first call and a trial burst at each size
    assert results[1].seconds(1) == [0.05] * 4
    assert results[1].cold_start == 1.5


def test_candidate_that_fails_is_a_result_and_the_rest_go_on():
    asked, workers = [], []

    def start(way):
        if way.name == "missing":
            raise CandidateError("No module named 'missing'")
        workers.append(FakeWorker(way, asked, fails_after=5 if way.name == "breaks" else None))
        return workers[-1]

    ways = [candidate("missing"), candidate("breaks"), candidate("works")]
    results, _ = measure(ways, Schedule(rounds=3, burst_seconds=0.01), start)
    assert [result.error for result in results] == [
        "No module named 'missing'",
        "out of luck",
        None,
    ]
    assert len(results[2].bursts[1]) == 3
    assert all(worker.closed for worker in workers)
    rows = to_rows(MODEL, results, None)
    assert [row["status"] for row in rows] == [
        "failed: No module named 'missing'",
        "failed: out of luck",
        "measured",
        "measured",
    ]


def test_groups_where_memory_is_short():
    alive, seen = [], []

    def start(way):
        worker = FakeWorker(way, [], megabytes=1000)
        alive.append(worker)
        seen.append((way.name, sum(not w.closed for w in alive)))
        return worker

    def available():  # 4 GB, of which each worker alive has one
        return 4e9 - 1e9 * sum(not worker.closed for worker in alive)

    ways = [candidate("product-numpy", sizes=(16,)), *map(candidate, "abcd")]
    results, _ = measure(ways, Schedule(1, 0.01), start, available=available)
    # The product and two more: a third would leave less than 1.2 GB and the reserve.
    assert seen == [
        *(("product-numpy", 1), ("a", 2), ("b", 3)),
        *(("product-numpy", 1), ("c", 2), ("d", 3)),
    ]
    assert all(worker.closed for worker in alive)
    assert [len(result.bursts) for result in results] == [1, 2, 2, 2, 2]


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
    assert (table["product-numpy", ""]["gflops"], table["product-torch", ""]["gflops"]) == (
        0.2,
        0.4,
    )
    one, ten = table["tflite_float32", 1], table["tflite_float32", 10]
    assert (one["milliseconds"], one["first_quartile"], one["third_quartile"]) == (4, 3.25, 4.75)
    assert (one["images_per_second"], ten["images_per_second"]) == (250, 250)
    assert (one["gflops"], one["share_of_limit"]) == (0.5, 1.25)  # 2 MFLOPs in 4 ms
    assert (one["ratio"], table["tflite", 1]["ratio"]) == (2, 1)
    assert (table["tflite", 1]["gflops"], table["tflite", 1]["share_of_limit"]) == ("", "")
    assert (table["onnx", 1]["ratio"], table["onnx", 1]["share_of_limit"]) == (1, "")
    assert (one["calls"], one["cores_used"], one["peak_megabytes"]) == (6, 0.5, 100)
    assert (one["others_share"], one["product_spread"], one["busy"]) == (0.05, 0, "no")


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


BEFORE = "cpu  1000 50 200 8000 100 10 20 30 0 0\ncpu0 1 2 3\n"
AFTER = "cpu  1300 50 260 8700 110 15 25 50 0 0\ncpu0 1 2 3\n"


def test_ticks_of_the_machine_by_hand():
    assert machine_ticks(BEFORE) == (9410, 1310)
    assert machine_ticks(AFTER) == (10510, 1700)  # time stolen is busy, waiting for disks is not


def test_ticks_of_a_process_whose_name_holds_anything():
    fields = ["S", *map(str, range(4, 14)), "700", "50", *map(str, range(16, 53))]
    assert process_ticks(f"12 (a ) b (c) {' '.join(fields)}\n") == 750


def test_share_of_others_by_hand():
    before = Snapshot(total=94.1, busy=13.1, own=5.0)
    after = Snapshot(total=105.1, busy=17.0, own=7.8)
    assert others_share([(before, after)]) == pytest.approx((3.9 - 2.8) / 11)
    assert others_share([(before, after), (None, None)]) is None
    all_ours = Snapshot(total=105.1, busy=17.0, own=9.0)  # the clocks are not quite the same
    assert others_share([(before, all_ours)]) == 0


def test_busy():
    assert busy(0.05, 0.02) == "no"
    assert busy(0.11, 0.02) == "yes"
    assert busy(None, 0.2) == "yes"
    assert busy(None, 0.02) == "unknown"


def test_memory_that_a_container_may_take(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_load, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine_load, "CONTAINER", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:  8000 kB\n")
    assert machine_load.available_memory() == 8000 * 1024
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 600\ninactive_file 50\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_load.available_memory() == 8000 * 1024
    (tmp_path / "memory.max").write_text("1000\n")
    assert machine_load.available_memory() == 350


def test_where_the_system_does_not_tell(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_load, "STAT", tmp_path / "none")
    monkeypatch.setattr(machine_load, "MEMORY", tmp_path / "none")
    monkeypatch.setattr(machine_load, "CONTAINER", tmp_path / "none")
    assert machine_load.snapshot([1]) is None
    assert machine_load.available_memory() is None
    asked = []
    results, others = measure([candidate("a")], Schedule(1, 0.01), lambda w: FakeWorker(w, asked))
    assert others is None
    assert results[0].error is None


def test_candidates_of_a_model():
    model = Model("gmlp_s16_224", Path("m.keras"), (224, 224, 3), 1000, 1, 1, "gmlp_s16_224")
    model.files, model.errors = {"tflite": Path("m.tflite")}, {"saved_model": "no luck"}
    found = candidates(model, [1, 2], [1, 64])
    of_one = [c for c in found if c.threads == 1]
    assert [c.name for c in of_one] == [
        *("product-numpy", "product-torch", "keras-tensorflow", "keras-jax", "keras-torch"),
        *("tflite", "timm", "timm-compiled", "saved_model"),
    ]
    assert [(c.name, c.missing) for c in of_one if c.missing] == [("saved_model", "no luck")]
    assert [c.backend for c in of_one][3] == "jax"
    only = candidates(MODEL, [1], [1], only=["timm", "tflite"])
    assert [(c.name, c.missing) for c in only][2:] == [("timm", "timm has no model like a")]


def test_names_in_timm():
    assert timm_architecture("gmlp_s16_224") == "gmlp_s16_224"
    assert timm_architecture("deit_ti16_distilled_224") == "deit_tiny_distilled_patch16_224"
    assert timm_architecture("eamlp_7_224") is None
    assert timm_architecture("gmlp_n4_32") is None
    assert timm_architecture("unheard_of_224") is None


def test_random_model_has_no_weight_at_its_start():
    for weight in random_model("gmlp_n4_32").weights:
        if "seed" not in weight.path:
            values = weight.numpy().ravel()
            assert len(set(values)) > len(values) / 2


def test_chart_and_report(tmp_path, saved_figures):
    seconds = [{"seconds": [0.001, 0.002], "cores": 1.0}]
    result = Result(candidate("tflite"), 0.2, {1: 50.0, 4: 60.0}, {1: seconds, 4: seconds})
    failed = [Result(candidate("onnx", threads), error="No module") for threads in (1, 2)]
    rows = to_rows(MODEL, [result, *failed], 0.5)
    charts.draw_bars(rows, tmp_path / "chart.png")
    with Image.open(tmp_path / "chart.png") as image:
        assert min(image.size) > 100
    one, four = (axes.patches for axes in saved_figures[0].axes)
    assert [bar.get_width() for bar in (*one, *four)] == pytest.approx([1.5, 1.5 / 4])  # an image
    text = markdown.to_markdown([MODEL], rows, "apps/benchmark.py a")
    assert "Made by `apps/benchmark.py a`." in text
    assert (
        "The machine was not quiet, the figures are not to be trusted: other processes took 50 %"
        in text
    )
    assert "| TFLite, 8-bit weights |         1.5 | 1.25 to 1.75 |  1.00 |" in text
    assert "2,667 | 2,286 to 3,200 |" in text  # images a second, 4 in 1.5 (1.75 to 1.25) ms
    assert "- `onnx`, threads 1 and 2: failed: No module" in text


def test_worker_is_asked_and_ended(tmp_path):
    worker = Worker(candidate("product-numpy", sizes=(32,), runtime="product-numpy"), tmp_path)
    answer = worker.ask({"size": 32, "calls": 3, "untimed": 1})
    assert len(answer["seconds"]) == 3
    assert min(answer["seconds"]) > 0
    assert answer["peak_megabytes"] > 5
    assert 0 < worker.cold_start < 60
    worker.process.kill()
    with pytest.raises(CandidateError, match="ended by SIGKILL"):
        worker.ask({"size": 32, "calls": 3, "untimed": 1})
    worker.close()


def test_worker_says_in_one_line_what_it_lacks(tmp_path):
    order = {"runtime": "file", "path": "none.tflite", "shape": (8, 8, 3)}
    with pytest.raises(CandidateError, match=r"none\.tflite: no such model") as caught:
        Worker(candidate("tflite", **order), tmp_path)
    assert "\n" not in str(caught.value)


def test_worker_without_an_answer_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "PATIENCE", 0.01)
    with pytest.raises(CandidateError, match="no answer within"):
        Worker(candidate("product-numpy", sizes=(32,), runtime="product-numpy"), tmp_path)


def test_variables_keep_the_user_s_flags(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    found = runtimes.variables(1, "jax")
    assert found["XLA_FLAGS"] == "--mine --xla_cpu_multi_thread_eigen=false"
    assert runtimes.variables(2, "jax")["XLA_FLAGS"] == "--mine"
    assert (found["OMP_NUM_THREADS"], found["KERAS_BACKEND"]) == ("1", "jax")


def test_conversion_that_crashes_leaves_the_other_formats(monkeypatch, tmp_path):
    facts = dataclasses.asdict(MODEL)
    good = {"format": "tflite", "path": "model.tflite"}
    bad = {"format": "onnx", "error": "no luck"}
    ends = iter([([facts, good], "ended by signal 11"), ([facts, bad], None)])
    asked = []

    def in_process(source, scratch, formats):
        asked.append(list(formats))
        return next(ends)

    monkeypatch.setattr(files, "_in_process", in_process)
    found = files.prepare("a", tmp_path, ["tflite", "saved_model", "onnx"])
    assert asked == [["tflite", "saved_model", "onnx"], ["onnx"]]
    assert found.files == {"tflite": Path("model.tflite")}
    assert found.errors == {"saved_model": "exporting: ended by signal 11", "onnx": "no luck"}


@pytest.mark.slow
def test_worker_of_timm(timm, tmp_path):
    order = {"runtime": "timm", "architecture": "mixer_s32_224", "shape": (32, 32, 3), "classes": 5}
    way = dataclasses.replace(candidate("timm", **order), sizes=(1,))
    worker = Worker(way, tmp_path, load_app("benchmark").program_of(way))
    assert len(worker.ask({"size": 2, "calls": 3, "untimed": 0})["seconds"]) == 3
    worker.close()
