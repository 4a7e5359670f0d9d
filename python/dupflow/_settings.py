"""Arguments of the public functions to those of the native module."""

import json
import os
from collections.abc import Mapping

Pipeline = str | os.PathLike[str]
"""The name of a built-in pipeline, or the path of a pipeline file (with a "/" or ending in ".toml")."""

Settings = Mapping[str, object]
"""Keys of a pipeline file with their values, as in `{"sketch.size": 512, "text.shingle": "words:5"}`. None
unsets a key."""


def assignments(threshold: float | None, settings: Settings | None) -> list[str]:
    """The settings as `--set` takes them; `threshold` is one of them."""
    all_settings: dict[str, object] = dict(settings or {})
    if threshold is not None:
        all_settings["threshold"] = threshold
    return [f"{key}={_value(value)}" for key, value in all_settings.items()]


def _value(value: object) -> str:
    """A value in TOML, but for a string, which `--set` takes as it is."""
    if value is None:
        return ""
    return value if isinstance(value, str) else _toml(value)


def _toml(value: object) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + " }"
    return str(value)


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
