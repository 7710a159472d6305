"""Answers questions about a text: prints the parts of the text that answer each."""

from keras_gmlp.programs.shared import text_options as shared
from keras_gmlp.programs.shared.cli import answer_each, print_bars

DEFAULT = shared.MODELS / "amlp_nano-squad"
AROUND = 40  # characters shown before and after an answer

USAGE = """\
questions QUESTION+  a question
--context FILE!  file with the text, in UTF-8; - reads standard input
--model MODEL
--top N:count=1  number of answers
--json  print one line of JSON per text
--threshold T:float  return no answer if its score exceeds the best answer's by more than T, for
    example 0; default: always an answer

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


def answer(options):
    context = shared.read_whole(options.context)
    model = shared.open_model(options, DEFAULT, "answer")

    def ask(question):
        return model.answers(question, context, options.top, options.threshold)

    def show(question, found):
        if options.json:
            shared.print_json(question=question, answers=shared.rounded(found))
            return
        shared.print_text(question)
        names = [" ".join(entry["answer"].split()) or "(no answer)" for entry in found]
        print_bars(names, [entry["score"] for entry in found])
        for entry in (entry for entry in found if entry["answer"]):
            start, end = max(0, entry["start"] - AROUND), entry["end"] + AROUND
            before, after = context[start : entry["start"]], context[entry["end"] : end]
            shown = " ".join(f"{before}[{entry['answer']}]{after}".split())
            shared.print_text(f"  {'...' * (start > 0)}{shown}{'...' * (end < len(context))}")

    answer_each(options, options.questions, ask, show)


main = shared.make_program("answer", __doc__, USAGE, answer, DEFAULT)
