"""CPU time and memory of the machine, by hand."""

import pytest
from fake_worker import FakeWorker, candidate

from keras_gmlp.benchmark import machine_load
from keras_gmlp.benchmark.machine_load import Snapshot, machine_ticks, others_share, process_ticks
from keras_gmlp.benchmark.measuring import Schedule, measure

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
    results, others = measure(
        [candidate("tflite")], Schedule(1, 0.01), lambda w: FakeWorker(w, asked)
    )
    assert others is None
    assert results[0].error is None
