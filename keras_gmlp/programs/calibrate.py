"""Calibrates a run: a temperature for its probabilities, and a threshold for unknown pictures."""

import json
import sys

from keras_gmlp.programs.shared import cli

EPILOG = """\
The temperature makes a probability say how often such predictions are right. Pictures whose energy
is above the threshold are rejected: classify.py, evaluate.py and the page take them for none of the
classes. Neither changes the predicted class. Both are fitted to images that the run was not trained
on, and stored in its model.keras and in all its exports.

Pictures of no class in a folder _other/, next to the class folders, measure how well they are
rejected. Training ignores them.

examples:
  apps/calibrate.py runs/gmlp_n4_32-photos                  trained with --validation or val/
  apps/calibrate.py runs/gmlp_n4_32-photos --reject 0.01
  apps/calibrate.py runs/gmlp_n4_32-photos --data new_photos/

exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = cli.Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "run",
        metavar="RUN",
        help="folder of a run, or the name of an included model, such as gmlp_photo_64, whose own "
        "files then change",
    )
    parser.add_argument(
        "--data",
        metavar="DIR|NAME",
        help="a folder with a folder of images for each class, or a data set by name; default: the "
        "run's",
    )
    parser.add_argument(
        "--split",
        choices=("validation", "test", "all"),
        help="default: the validation images of the run's data, all images of other data",
    )
    parser.add_argument(
        "--reject",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="share of the images of known classes that may be rejected; default: 0.05",
    )
    cli.add_data_dir(parser)
    cli.add_backend(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    if not 0 <= options.reject < 1:
        parser.error(f"--reject must be at least 0 and below 1; received {options.reject}")
    return options


def main(arguments=None):
    options = parse(arguments)
    return cli.guarded("calibrate", lambda: run(options))


def run(options):
    with cli.quiet():  # imported here, so that --help is fast
        from keras_gmlp.evaluation import calibration
    result = calibration.calibrate_run(options.run, options.data, options.split, options.reject)
    if options.json:
        print(json.dumps(result))
    else:
        show(result)
    if outdated := calibration.find_outdated(options.run):
        formats = " ".join("mediapipe" if "mediapipe" in name else name for name in outdated)
        print(
            f"calibrate: {', '.join(outdated)}: its own probabilities get the temperature when it "
            f"is exported again: apps/export.py {options.run} --formats {formats}",
            file=sys.stderr,
            flush=True,
        )
    return 0


def show(result):
    from keras_gmlp.utils.errors import printable

    before, after = result["calibration_error_before"], result["calibration_error"]
    few = "; a hundred or more give reliable figures" if result["images"] < 100 else ""
    print(f"images             {result['images']:,} of {printable(result['data'])}{few}")
    print(f"temperature        {result['temperature']:.4f}")
    print(f"calibration error  {100 * before:.2f} % before, {100 * after:.2f} % after")
    print(f"energy threshold   {result['energy_threshold']:.4f}")
    print(f"rejected           {100 * result['rejected']:.2f} % of these images")
    if "auroc" in result:
        share = 100 * result["other_rejected"]
        print(f"                   {share:.2f} % of {result['other_images']:,} other pictures")
        print(f"AUROC              {result['auroc']:.4f} for known against other pictures")
