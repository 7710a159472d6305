"""Tables in Markdown."""


def make_table(head, rows, numbers=()):
    """Returns the lines of a table, given rows of texts; columns `numbers` align to the right."""
    rule = ["---:" if place in numbers else "---" for place in range(len(head))]
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
