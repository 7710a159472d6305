"""Stores a teacher's answers to fixed views of the training images, for distillation."""

import dataclasses
import json

from keras_gmlp.programs.shared.cli import Parser, add_backend, guarded
from keras_gmlp.programs.shared.run_options import add_data_options

EPILOG = """\
A teacher that is slower than its student answers once, not in every epoch. Each view is a random
window of an image, mirrored or not; training then shows the student the same views, one in each
epoch, and starts again after the last one.

TEACHER is a run's folder, a .keras file or an ONNX file of any framework, which takes float32
images (batch, height, width, channels) in [0, 255] of a fixed size and returns `logits` and, if it
has them, `features`. OpenVINO runs ONNX files if it is installed, otherwise ONNX Runtime.

examples:
  apps/teach.py saved_models/resnet_56_32-cifar10 --data cifar10 --out runs/answers
  apps/teach.py teacher.onnx --data photos/ --image-size 64 --views 8 --out runs/answers
  apps/train.py --data photos/ --image-size 64 --teacher runs/answers --set feature_weight=1

Train with the same --data, --image-size, --validation and --fraction. A run that was stopped
resumes after its last complete view when the same command is given again.
exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "teacher",
        metavar="TEACHER",
        help="a run, the name of an included model, a .keras or an .onnx file",
    )
    add_data_options(parser)
    parser.add_argument("--out", required=True, metavar="FOLDER", help="folder for the answers")
    parser.add_argument(
        "--views", type=int, default=8, metavar="N", help="views of each image; default: 8"
    )
    parser.add_argument(
        "--scale",
        type=float,
        nargs=2,
        default=[0.35, 1.0],
        metavar=("SMALLEST", "LARGEST"),
        help="area of a view, as a share of the image's; default: 0.35 1",
    )
    parser.add_argument(
        "--no-flip", action="store_true", help="never mirror a view (letters, signs)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the views; default: 0")
    parser.add_argument(
        "--threads", type=int, metavar="N", help="threads of an ONNX file; default: all"
    )
    add_backend(parser)
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    options = parser.parse_args(arguments)
    from keras_gmlp.data.images.views import Views

    try:
        draws = {"flip": not options.no_flip, "seed": options.seed}
        options.views = Views(options.views, tuple(options.scale), **draws)
    except ValueError as error:
        parser.error(str(error))
    parser.check_output(options.out, options.data, options.teacher)
    return options


def main(arguments=None):
    options = parse(arguments)
    return guarded("teach", lambda: run(options))


def run(options):
    from keras_gmlp.data.images.answers import measure_answers, store_answers
    from keras_gmlp.runs.prepare import load_data
    from keras_gmlp.runs.settings import DataSettings, RunSettings, read_options
    from keras_gmlp.training.teachers import open_teacher

    teacher = open_teacher(options.teacher, options.threads)
    settings = RunSettings(data=read_options(DataSettings, vars(options)))
    data = load_data(settings, teacher.image_shape)
    views = options.views
    if not data.mirror:
        views = dataclasses.replace(views, flip=False)
    expected = measure_answers(len(data.train), views.count, teacher.sizes)
    if not options.json:
        numbers = " and ".join(f"{size:,} {kind}" for kind, size in teacher.sizes.items())
        print(f"teacher  {options.teacher}, {numbers}", flush=True)
        print(f"images   {len(data.train):,}, {views.count} views, {expected / 1e6:,.1f} MB")
    source = {"teacher": str(options.teacher).rstrip("/")}
    store_answers(teacher, data, options.out, views, description=source)
    if options.json:
        summary = {"path": options.out, "images": len(data.train), "views": views.count}
        print(json.dumps({**summary, **teacher.sizes, "bytes": expected}))
        return 0
    print(f"to       {options.out}; train with --teacher {options.out}")
    return 0
