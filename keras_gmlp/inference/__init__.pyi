from ..tasks.text_model import TextModel as TextModel
from .similarity import embed as embed
from .similarity import find_similar as find_similar
