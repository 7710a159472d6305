#!/usr/bin/env python3
from start import start

start(__name__, "classify_text")
