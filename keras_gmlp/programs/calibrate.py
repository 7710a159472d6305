"""Calibrates a run: a temperature for its probabilities, and a threshold for unknown inputs."""

from keras_gmlp.programs.shared import cli

USAGE = """\
run RUN  folder of a run, or the name of an included model, such as gmlp_photo_64, whose own files
    then change
--data DIR|NAME  a folder with a folder of images for each class, labelled texts, or a data set by
    name; default: the run's
--split validation|test|all  default: the validation images, or held-out texts, of the run's data,
    all of other data
--reject SHARE=0.05  share of the inputs of known classes that may be rejected, or none for no
    threshold
--data-dir
--backend
--json  print the result as JSON

The temperature makes a probability say how often such predictions are right. Pictures, or texts,
whose energy is above the threshold are rejected: the programs and the page take them for none of
the classes. Neither changes the predicted class. Both are fitted to images, or texts, that the run
was not trained on, and stored in its model.keras and in all its exports. The printed shares are
those of model.keras; a file with 8-bit weights may reject a few other samples.

Pictures of no class in a folder _other/, next to the class folders, measure how well they are
rejected. Training ignores them.

examples:
  apps/calibrate.py runs/gmlp_n4_32-photos                  trained with --validation or val/
  apps/calibrate.py runs/gmlp_n4_32-photos --reject 0.01
  apps/calibrate.py runs/gmlp_n4_32-photos --data new_photos/
  apps/calibrate.py runs/gmlp_nano-sst2 --split test --reject none     a text classifier
"""


def share(text):
    """Returns a share from the command line, or `None` for none."""
    return None if text == "none" else float(text)


def run(options):
    cli.import_tensorflow()
    from keras_gmlp.evaluation import calibration

    result = calibration.calibrate_run(options.run, options.data, options.split, options.reject)
    cli.show_result(options, result, show)
    if outdated := calibration.find_outdated(options.run):
        formats = " ".join("mediapipe" if "mediapipe" in name else name for name in outdated)
        text = f"{', '.join(outdated)} get the temperature when they are exported again"
        again = f"apps/export.py {options.run} --formats {formats}"
        cli.fail(options, f"{text}: {again}", code=0)


def show(result):
    from keras_gmlp.utils.errors import printable

    before, after = result["calibration_error_before"], result["calibration_error"]
    count = result.get("texts") or result["images"]
    few = "; a hundred or more give reliable figures" if count < 100 else ""
    unit = "texts " if "texts" in result else "images"
    print(f"{unit}             {count:,} of {printable(result['data'])}{few}")
    print(f"temperature        {result['temperature']:.4f}")
    print(f"calibration error  {100 * before:.2f} % before, {100 * after:.2f} % after")
    if "rejected" in result:
        print(f"energy threshold   {result['energy_threshold']:.4f}")
        print(f"rejected           {100 * result['rejected']:.2f} % of these {unit.strip()}")
    if "other_rejected" in result:
        share = 100 * result["other_rejected"]
        print(f"                   {share:.2f} % of {result['other_images']:,} other pictures")
    if "auroc" in result:
        print(f"AUROC              {result['auroc']:.4f} for known against other pictures")


main = cli.Program("calibrate", __doc__, USAGE, run, reject={"type": share})
