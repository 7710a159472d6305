"""Whether a text model, its tokenizer and its task fit together."""


def check_length(task):
    """Raises a `ValueError` if the number of tokens is no positive integer."""
    if type(task.length) is not int or task.length < 8:
        raise ValueError(f"length must be an integer from 8 on; received {task.length!r}.")


def check_words(model, data):
    """Raises a `ValueError` if the model has another vocabulary than the data."""
    words = model.get_layer("token_embedding").input_dim
    if words != data.tokenizer.size:
        raise ValueError(
            f"The model has {words} words; the tokenizer of {data.name} has "
            f"{data.tokenizer.size}. Build the model with tokenizer=..., or prepare the text "
            "with the tokenizer of the model."
        )


def check_longest(model, length):
    """Raises a `ValueError` if texts are longer than the model takes."""
    from keras_gmlp.models.structure import longest_text

    longest = longest_text(model)
    if longest and length > longest:
        raise ValueError(
            f"The model takes at most {longest} tokens; received length={length}. Build it with "
            f"max_length={length} (--set-model max_length={length}), or lower the length."
        )
