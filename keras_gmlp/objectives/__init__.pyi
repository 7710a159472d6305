from .losses import CrossEntropy as CrossEntropy
from .losses import MaskedCrossEntropy as MaskedCrossEntropy
from .metrics import Accuracy as Accuracy
from .metrics import MeanAveragePrecision as MeanAveragePrecision
from .metrics import Perplexity as Perplexity
from .optimizers import LayerwiseAdamW as LayerwiseAdamW
from .optimizers import MatrixMuon as MatrixMuon
