"""Writes a data set once, scaled, so that training decodes nothing."""

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.parser import both_sides
from keras_gmlp.utils.files import require_output

USAGE = """\
source SOURCE  a folder, a table (.csv, .tsv) or a TensorFlow Datasets name, as for --data
--out FOLDER!  a new folder; existing ones are kept
--size PIXELS|HxW:size=256  side of the images, or height and width
--fit
--data-dir
--json  print a summary as JSON

The folder holds the images in one size as plain pixels: nothing is decoded when they are read, and
the system keeps in memory what fits. An image of 256 pixels takes 197 kB, ImageNet 262 GB. --data
takes the folder wherever it takes a folder of images.

Pack images a little larger than the model's when you train with random resized crops (256 for 224),
and otherwise at the model's size. The sides of a picture that the size leaves out are lost; --fit
stretch and --fit pad keep them, and training then takes the fit of the folder.

examples:
  apps/pack.py photos/ --out packed/photos
  apps/pack.py imagenet2012 --out packed/imagenet --size 256
  apps/train.py --data packed/imagenet --model gmlp_s16_224 --recipe imagenet

A run that stops leaves no folder. The same command starts again; it also deletes what a killed run
left.
"""


def run(options):
    cli.import_tensorflow()  # which the search for a data set by name imports
    from keras_gmlp.data.datasets import load
    from keras_gmlp.data.images.packed import pack

    data = load(options.source, both_sides(options.size), fit=options.fit)
    size = pack(data, options.out)
    summary = {
        "path": options.out,
        **{name: len(split) for name, split in data.splits().items()},
        "classes": len(data.labels),
        "image_shape": list(data.image_shape),
        "bytes": size,
    }
    cli.show_result(options, summary, show)


def show(summary):
    uses = {"train": "training", "test": "testing", "validation": "validation"}
    counts = [f"{summary[name]:,} for {use}" for name, use in uses.items() if name in summary]
    shape = " x ".join(map(str, summary["image_shape"]))
    print(f"images  {', '.join(counts)}")
    print(f"        {shape}, {summary['classes']} classes, {summary['bytes'] / 1e6:,.1f} MB")
    print(f"to      {summary['path']}")


def check(options):
    require_output(options.out, options.source)


main = cli.Program("pack", __doc__, USAGE, run, check)
