"""What stands for SQL text."""


def as_sql(value):
    """The SQL text of an `Expr`; everything else as it is."""
    return getattr(value, "_sql_text", value)
