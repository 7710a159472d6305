"""Exports a trained model to files for deployment, and checks each on test images."""

import functools
import os

from keras_gmlp.programs.shared import cli
from keras_gmlp.utils.formats import FORMATS, TEXT_FORMATS

LINES = "\n".join(f"  {name:16} {each.about} ({each.path})" for name, each in FORMATS.items())
USAGE = f"""\
run RUN  folder of a run, or the name of an included model
--formats FORMAT+  default: all whose requirements are installed, without features and mediapipe
--data NAME|FOLDER|FILE  data set for the checks; default: the run's. Of a language model, a text
    file
--data-dir
--fold  of a ResMLP: first fold Affine and LayerScale
--to NAME  then upload models, card and records to hf://OWNER/MODEL, a page of the Hugging Face hub
    that is public unless you made it private, by the account of `hf auth login`
--no-check  skip the checks, which require the data; no int8; removes the recorded checks of the
    files that are replaced
--json  print the results of the checks as JSON

formats:
{LINES}
a text model has the formats {", ".join(TEXT_FORMATS)}, with its tokenizer

examples:
  apps/export.py gmlp_n4_32-cifar10                        an included model
  apps/export.py runs/gmlp_n4_32-digits --formats tflite saved_model
  apps/export.py runs/gmlp_n4_32-cifar10 --formats mediapipe
  apps/export.py runs/gmlp_nano-sst2                        a text classifier
  apps/export.py runs/gmlp_nano-text --data held_out.txt    a language model
  apps/export.py runs/gmlp_n4_32-digits --to hf://me/digits
"""


def run(options):
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    cli.import_tensorflow()
    from keras_gmlp.export.hub import create_repository, upload
    from keras_gmlp.export.verify import export_run, load_check_data

    report = (lambda text: None) if options.json else functools.partial(print, flush=True)
    data = None if options.no_check else load_check_data(options.run, options.data)
    repository = create_repository(options.to) if options.to else None  # a wrong name ends here
    found = export_run(options.run, options.formats, data, report, folded=options.fold)
    if repository:
        upload(options.run, repository)
        report(f"uploaded to {repository}")
    cli.show_result(options, found)


main = cli.Program("export", __doc__, USAGE, run, formats={"choices": FORMATS})
