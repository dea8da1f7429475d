"""What every test shares."""

import os
import signal

import pytest

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# As the programs do, so that all machines test the same forms.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

# A shell's jobs in the background ignore Ctrl-C, which tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# They train or export a network, measure, or start a browser: seconds each.
_SLOW_FIXTURES = {
    "browser", "exported", "loaded", "measured", "models", "saved", "shipped",
    "trained",
}  # fmt: skip


def skip_or_fail(reason):
    """Something that a test needs is missing: on CI that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"With CI=true nothing is skipped: {reason}")
    pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks as slow whatever uses a slow fixture; the longest come first.

    Those of the trainers start whole programs, minutes each: the last to run,
    one process would be left waiting for the other.
    """
    for item in items:
        if _SLOW_FIXTURES.intersection(item.fixturenames):
            item.add_marker(pytest.mark.slow)
    items.sort(key=_rank)


def _rank(item):
    is_slow = item.get_closest_marker("slow") is not None
    return not (is_slow and "trainers" in item.path.parts)
