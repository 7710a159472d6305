"""Text: tokenizer, corpus, masked windows and labelled sentences."""
