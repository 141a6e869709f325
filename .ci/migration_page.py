"""The table of Flink's options in docs/migration.md."""

from __future__ import annotations

from spark_elastic.core.keys.flink import OPTIONS, Option


def options_table() -> str:
    """Return a Markdown table of Flink's options and the settings of ours that correspond to them."""
    rows = ["| Flink | spark-elastic | difference |", "|---|---|---|", *map(_row, OPTIONS)]
    return "\n".join(rows)


def _row(option: Option) -> str:
    ours = f"`{option.key.name}`" if option.key is not None else option.instead or "none"
    older = [name for name in option.older if not name.startswith("kubernetes.operator.")]
    past = f" (older: {', '.join(f'`{name}`' for name in older)})" if older else ""
    return f"| `{option.name}`{past} | {ours} | {option.difference} |"
