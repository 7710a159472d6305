"""Stores a teacher's answers to fixed views of the training images, for distillation."""

import dataclasses

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.run_options import DATA

USAGE = f"""\
teacher TEACHER  a run, the name of an included model, a .keras or an .onnx file{DATA}\
--out FOLDER!  folder for the answers
--views N:int=8  views of each image
--scale SHARE:float  area of a view, as a share of the image's; default: 0.35 1
--no-flip  never mirror a view (letters, signs)
--seed SEED:int=0  of the views
--threads N:int  threads of an ONNX file; default: all
--backend
--json  print a summary as JSON

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
"""


def check(options):
    from keras_gmlp.data.images.views import Views

    with cli.usage_errors():
        draws = {"flip": not options.no_flip, "seed": options.seed}
        options.views = Views(options.views, tuple(options.scale), **draws)
    cli.check_output(options.out, options.data, options.teacher)


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
    summary = {"path": options.out, "images": len(data.train), "views": views.count}
    cli.show_result(options, {**summary, **teacher.sizes, "bytes": expected}, show)


def show(summary):
    print(f"to       {summary['path']}; train with --teacher {summary['path']}")


SETTINGS = {
    "scale": {"nargs": 2, "default": [0.35, 1.0], "metavar": ("SMALLEST", "LARGEST")},
    "fraction": {"default": 1.0},
}
main = cli.Program("teach", __doc__, USAGE, run, check, **SETTINGS)
