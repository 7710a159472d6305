"""Dividing texts into those for training and those that are held out."""

from keras_gmlp.data.dividing import check_share, choose


def divide_whole(texts, labels, share, seed):
    """Holds out whole texts, and leaves their parts out of the texts for training.

    A text is whole if no other contains its words in a row. Arguments and errors are those of
    `data.dividing.divide`; `texts` is a list of strings.

    Returns:
        The places of the texts that are kept and of those that are held out, in order; those of
        parts of held-out texts are in neither.
    """
    check_share(share)
    words = [tuple(text.lower().split()) for text in texts]
    known = set(words)
    lengths = sorted({len(text) for text in known})
    inside = {part for text in known for part in _parts(text, lengths) if part in known}
    last = {text: place for place, text in enumerate(words)}  # one place for equal texts
    whole = [place for text, place in last.items() if text not in inside]
    chosen = choose([labels[place] for place in whole], share, seed)
    cut = sorted(whole[member] for member in chosen)
    lost = {part for place in cut for part in (words[place], *_parts(words[place], lengths))}
    return [place for place, text in enumerate(words) if text not in lost], cut


def _parts(words, lengths):
    """Yields the words in a row of these lengths, without the whole."""
    for length in lengths:
        if length >= len(words):
            return
        for start in range(len(words) - length + 1):
            yield words[start : start + length]
