"""Answers questions about a text: prints the parts of the text that answer each."""

import contextlib

from keras_gmlp.programs.shared.cli import Parser, guarded
from keras_gmlp.programs.shared.text_options import (
    MODELS,
    add_model,
    open_model,
    parse,
    print_bars,
    print_json,
    print_text,
    read_whole,
    report,
    rounded,
)

DEFAULT = MODELS / "amlp_nano-squad"

AROUND = 40  # characters shown before and after an answer

EPILOG = """\
examples:
  apps/answer.py --context rome.txt "Who founded Rome?" --model runs/amlp_nano-squad
  apps/answer.py --context rome.txt "Who?" "When?" --model runs/amlp_nano-squad --top 3
  man ls | apps/answer.py --context - "Which option sorts?" --model runs/amlp_nano-squad --json
  apps/answer.py --context rome.txt "Who?" --model runs/amlp_nano-squad --threshold 0

No model for questions is included: apps/train_text.py --task squad trains one.

The text may have any length. JSON has the keys score, start, end and answer; start and end count
characters of the text. No answer is an empty one.

exit codes: 0 done, 1 the text or the model could not be read, 2 wrong usage,
130 stopped with Ctrl-C
"""


def main(arguments=None):
    parser = Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument("questions", nargs="+", metavar="QUESTION", help="a question")
    parser.add_argument(
        "--context",
        required=True,
        metavar="FILE",
        help="file with the text, in UTF-8; - reads standard input",
    )
    add_model(parser, DEFAULT, top=1, what="answers")
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="return no answer if its score exceeds the best answer's by more than T, for example "
        "0; default: always an answer",
    )
    options = parse(parser, arguments)
    options.program = "answer"
    return guarded("answer", lambda: answer(options), only_prints=True)


def answer(options):
    context = read_whole(options.context)
    model = open_model(options, DEFAULT, "answer")
    with contextlib.suppress(BrokenPipeError):  # stops quietly when the reader, such as head, ends
        for question in options.questions:
            try:
                found = model.answers(question, context, options.top, options.threshold)
            except ValueError as error:
                report(options, error)
                options.code = 1
            else:
                show(question, context, found, options.json)
    return options.code


def show(question, context, found, as_json):
    if as_json:
        print_json(question=question, answers=rounded(found))
        return
    print_text(question)
    names = [" ".join(entry["answer"].split()) or "(no answer)" for entry in found]
    print_bars(names, [entry["score"] for entry in found])
    for entry in (entry for entry in found if entry["answer"]):
        start, end = max(0, entry["start"] - AROUND), entry["end"] + AROUND
        before, after = context[start : entry["start"]], context[entry["end"] : end]
        shown = " ".join(f"{before}[{entry['answer']}]{after}".split())
        print_text(f"  {'...' * (start > 0)}{shown}{'...' * (end < len(context))}")
