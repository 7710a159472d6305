from .similarity import embed as embed
from .similarity import find_similar as find_similar
from .text import TextModel as TextModel
