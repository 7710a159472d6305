"""The epochs and seconds until a run reached an accuracy."""

import json

import pytest

from keras_gmlp.comparison.time_to_accuracy import main, measure

HISTORY = """epoch,accuracy,loss,seconds,val_accuracy,val_loss
0,0.5,1.0,10.5,0.4,1.1
1,0.7,0.8,12.0,0.885,0.9
2,0.8,0.7,11.0,0.88,0.8
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/history.csv").write_text(HISTORY)
    return tmp_path / "a"


def test_the_first_epoch_that_reaches_the_goal_ends_the_time(run):
    expected = {"run": "a", "trained": 3, "epoch_seconds": 11.0, "best": 0.885}
    assert measure(run) == {**expected, "epochs": 2, "seconds": 22.5}
    assert measure(run, 0.4)["seconds"] == 10.5
    assert measure(run, 0.886) == {**expected, "epochs": None, "seconds": None}


def test_table_and_json(run, capsys):
    assert main([str(run), "--accuracy", "0.88"]) == 0
    assert capsys.readouterr().out.splitlines()[2] == "| a | 2 | 3 | 11 | 22 | 88.50 % |"
    assert main([str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["seconds"] == 22.5
    assert main([str(run), "--accuracy", "0.9"]) == 0
    assert "| a | not reached | 3 | 11 |  | 88.50 % |" in capsys.readouterr().out


def test_mistakes(run, capsys):
    assert main([str(run.parent / "b")]) == 1
    assert "no history.csv with an epoch" in capsys.readouterr().err
    with pytest.raises(SystemExit) as error:
        main([str(run), "--accuracy", "88.5"])
    assert error.value.code == 2
    assert "must be in (0, 1], such as 0.885; received 88.5" in capsys.readouterr().err
