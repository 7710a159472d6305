from .data.text.corpus import prepare_corpus as prepare_corpus
from .data.text.labelled_texts import load_text as load_text
from .data.text.masking import MaskedBatches as MaskedBatches
from .data.text.tokenizer import Tokenizer as Tokenizer
from .inference.similarity import embed as embed
from .inference.similarity import find_similar as find_similar
from .inference.text import from_keras as from_keras
from .models.language_families import BERT as BERT
from .models.language_families import aMLP as aMLP
from .models.language_families import gMLP as gMLP
from .models.language_model import adapt as adapt
from .models.language_model import language_model as language_model
from .models.language_model import text_classifier as text_classifier
from .models.presets import build as build
from .tasks.masked_lm import MaskedLM as MaskedLM
from .tasks.text_classification import TextClassification as TextClassification
from .tasks.text_model import TextModel as TextModel
from .weights.bert import load_bert as load_bert

PRESETS: dict[str, tuple[str, dict]]
