"""Pictures for the page that require no data set."""

import numpy as np
from PIL import Image
from web_page import encoded


def noisy_digits(count):
    """Returns PNG files of handwritten digits in many sizes and colours."""
    from sklearn.datasets import load_digits

    random = np.random.default_rng(0)
    files = []
    for digit in load_digits().images[:count]:
        tint = random.uniform(0, 255, (2, 1, 1, 3))
        image = tint[0] + (tint[1] - tint[0]) * digit[..., None] / 16
        size = random.integers(20, 100, 2)
        large = Image.fromarray(image.astype("uint8")).resize(size, Image.Resampling.BICUBIC)
        noisy = np.asarray(large) + random.normal(0, 8, (*size[::-1], 3))
        files.append(encoded(Image.fromarray(noisy.clip(0, 255).astype("uint8"))))
    return files
