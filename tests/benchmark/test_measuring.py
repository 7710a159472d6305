"""Candidates take turns, in groups if memory is short; what else the machine does, by hand."""

import pytest
from fake_worker import MODEL, FakeWorker, candidate

from keras_gmlp.benchmark import machine_load
from keras_gmlp.benchmark.machine_load import Snapshot, machine_ticks, others_share, process_ticks
from keras_gmlp.benchmark.measuring import measure
from keras_gmlp.benchmark.report import to_rows
from keras_gmlp.benchmark.worker import CandidateError

BEFORE = "cpu  1000 50 200 8000 100 10 20 30 0 0\ncpu0 1 2 3\n"
AFTER = "cpu  1300 50 260 8700 110 15 25 50 0 0\ncpu0 1 2 3\n"


def test_turns_are_taken_within_each_round():
    asked = []
    ways = [candidate("product-numpy", sizes=(16,)), candidate("tflite"), candidate("onnx")]
    results, _ = measure(ways, 2, 0.1, lambda way: FakeWorker(way, asked))
    one_round = [("product-numpy", 16, 1), ("tflite", 1, 2), ("onnx", 1, 2)]
    one_round += [("tflite", 4, 1), ("onnx", 4, 1)]
    assert asked[-10:] == [*one_round, *one_round]
    warm_up = asked[:-10]
    assert {name for name, *_ in warm_up[:2]} == {"product-numpy"}
    assert len(warm_up) == 2 * (1 + 2 + 2)  # a first call and a trial burst at each size
    assert results[1].seconds(1) == [0.05] * 4
    assert results[1].cold_start == 1.5


def test_candidate_that_fails_is_a_result_and_the_rest_continue():
    workers = []

    def start(way):
        if way.name == "timm":
            raise CandidateError("No module named 'missing'")
        workers.append(FakeWorker(way, [], fails_after=5 if way.name == "tflite" else None))
        return workers[-1]

    results, _ = measure(list(map(candidate, ("timm", "tflite", "onnx"))), 3, 0.01, start)
    errors = ["No module named 'missing'", "out of luck", None]
    assert [result.error for result in results] == errors
    assert len(results[2].bursts[1]) == 3
    assert all(worker.closed for worker in workers)
    states = [*(f"failed: {error}" for error in errors[:2]), "measured", "measured"]
    assert [row["status"] for row in to_rows(MODEL, results, None)] == states


def test_groups_where_memory_is_short():
    workers, seen = [], []

    def alive():
        return sum(not worker.closed for worker in workers)

    def start(way):
        workers.append(FakeWorker(way, [], megabytes=1000))
        seen.append((way.name, alive()))
        return workers[-1]

    ways = [candidate("product-numpy", sizes=(16,))]
    ways += map(candidate, ("tflite", "onnx", "saved_model", "timm"))
    # There are 4 GB, of which each worker alive has one.
    results, _ = measure(ways, 1, 0.01, start, available=lambda: 4e9 - 1e9 * alive())
    # The product and two more: a third would leave less than 1.2 GB and the reserve.
    assert seen == [
        *(("product-numpy", 1), ("tflite", 2), ("onnx", 3)),
        *(("product-numpy", 1), ("saved_model", 2), ("timm", 3)),
    ]
    assert alive() == 0
    assert [len(result.bursts) for result in results] == [1, 2, 2, 2, 2]


def test_cpu_time_by_hand():
    assert machine_ticks(BEFORE) == (9410, 1310)
    assert machine_ticks(AFTER) == (10510, 1700)  # time stolen is busy, waiting for disks is not
    fields = ["S", *map(str, range(4, 14)), "700", "50", *map(str, range(16, 53))]
    assert process_ticks(f"12 (a ) b (c) {' '.join(fields)}\n") == 750


def test_share_of_others_by_hand():
    before = Snapshot(total=94.1, busy=13.1, own=5.0)
    after = Snapshot(total=105.1, busy=17.0, own=7.8)
    assert others_share([(before, after)]) == pytest.approx((3.9 - 2.8) / 11)
    assert others_share([(before, after), (None, None)]) is None
    # The clocks are not quite the same.
    assert others_share([(before, after._replace(own=9.0))]) == 0


def test_memory_that_a_container_may_take(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_load, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine_load, "CONTAINER", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:  8000 kB\n")
    assert machine_load.available_memory() == 8000 * 1024
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 600\ninactive_file 50\n")
    for limit, available in (("max", 8000 * 1024), ("1000", 350)):
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        assert machine_load.available_memory() == available


def test_where_the_system_does_not_tell(tmp_path, monkeypatch):
    for name in ("STAT", "MEMORY", "CONTAINER"):
        monkeypatch.setattr(machine_load, name, tmp_path / "none")
    assert machine_load.snapshot([1]) is None
    assert machine_load.available_memory() is None
    results, others = measure([candidate("tflite")], 1, 0.01, lambda way: FakeWorker(way, []))
    assert (others, results[0].error) == (None, None)
