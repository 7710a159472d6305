from .classifier import Classifier as Classifier
from .image_classification import ImageClassification as ImageClassification
from .masked_lm import MaskedLM as MaskedLM
from .multi_label_classification import MultiLabelClassification as MultiLabelClassification
from .multi_label_texts import MultiLabelTexts as MultiLabelTexts
from .task import Task as Task
from .text_classification import TextClassification as TextClassification
from .text_task import TextTask as TextTask
