"""Trains, evaluates, exports and uses models of keras_gmlp: starts a program by its name."""

import sys

from keras_gmlp import __version__
from keras_gmlp.programs import list_programs, run
from keras_gmlp.programs.shared.messages import COMMAND
from keras_gmlp.programs.shared.parser import Parser
from keras_gmlp.utils.errors import did_you_mean


def main(arguments=None):
    given = sys.argv[1:] if arguments is None else arguments
    programs = list_programs()
    width = max(map(len, programs))
    lines = [f"  {name:{width}}  {line}" for name, line in programs.items()]
    more = f"{COMMAND} PROGRAM --help shows the options of a program, with examples."
    parser = Parser(
        prog=COMMAND,
        usage="%(prog)s PROGRAM [OPTION ...]",
        description=__doc__,
        epilog="\n".join(["programs:", *lines, "", more]),
    )
    parser.add_argument("program", metavar="PROGRAM", help="one of the programs below")
    parser.add_argument("--version", action="version", version=f"keras_gmlp {__version__}")
    chosen = parser.parse_args(given[:1]).program
    name = chosen.replace("-", "_")
    if name not in programs:
        advice = did_you_mean(name, programs, str, most=3) or f" See {COMMAND} --help."
        parser.error(f"no program {chosen!r}.{advice}")
    sys.argv[0] = f"{COMMAND} {name}"  # which usage lines and advice show
    return run(name, given[1:])


if __name__ == "__main__":
    sys.exit(main())
