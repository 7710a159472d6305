#!/usr/bin/env python3
"""Packs a folder of pictures and stores a teacher's features of random views of them.

A run that was stopped resumes after its last complete view when the command is repeated.
"""

import argparse

from sources import Pictures, Teacher, pack_pictures, store_features


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teacher", help="ONNX file, see make_teacher.py")
    parser.add_argument("pictures", help="folder; the pictures may lie in any folders inside it")
    parser.add_argument("--out", required=True, help="folder for the packed pictures and features")
    parser.add_argument("--labelled", action="store_true", help="folders are classes")
    parser.add_argument("--size", type=int, default=144, help="pixels of the packed pictures")
    parser.add_argument("--views", type=int, default=4, help="views of each picture")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    pack_pictures(options.pictures, options.out, options.size, options.labelled)
    teacher = Teacher(options.teacher, options.threads)
    store_features(Pictures(options.out, teacher=teacher), options.views)


if __name__ == "__main__":
    main()
