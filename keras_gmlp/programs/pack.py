"""Writes a data set once, scaled, so that training decodes nothing."""

import json

from keras_gmlp.programs.shared import cli

EPILOG = """\
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
exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = cli.Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a folder, a table (.csv, .tsv) or a TensorFlow Datasets name, as for --data",
    )
    parser.add_argument(
        "--out", required=True, metavar="FOLDER", help="a new folder; existing ones are kept"
    )
    parser.add_argument(
        "--size",
        type=cli.image_size,
        default=256,
        metavar="PIXELS|HxW",
        help="side of the images, or height and width; default: %(default)s",
    )
    cli.add_fit(parser)
    cli.add_data_dir(parser)
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    options = parser.parse_args(arguments)
    parser.check_output(options.out, options.source)
    return options


def main(arguments=None):
    options = parse(arguments)
    return cli.guarded("pack", lambda: run(options))


def run(options):
    from keras_gmlp.data.datasets import load
    from keras_gmlp.data.images.packed import pack

    data = load(options.source, cli.both_sides(options.size), fit=options.fit)
    size = pack(data, options.out)
    counts = {name: len(split) for name, split in data.splits().items()}
    summary = {
        "path": options.out,
        **counts,
        "classes": len(data.labels),
        "image_shape": list(data.image_shape),
        "bytes": size,
    }
    if options.json:
        print(json.dumps(summary))
        return 0
    height, width, channels = data.image_shape
    uses = {"train": "training", "test": "testing", "validation": "validation"}
    print("images  " + ", ".join(f"{count:,} for {uses[name]}" for name, count in counts.items()))
    print(
        f"        {height} x {width} x {channels}, {len(data.labels)} classes, {size / 1e6:,.1f} MB"
    )
    print(f"to      {options.out}")
    return 0
