"""Ten thousand requests of each protocol that nobody would send."""

import asyncio
import collections
import contextlib
import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.export.serve import odd_inferences, odd_predictions, served


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    return served.Served(folder, {"stable": 1}, max_megapixels=0.1)


def drawn(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


class Asker:
    """Asks, and counts how it is answered."""

    def __init__(self, server):
        self.statuses = collections.Counter()
        self._server = server
        self._loop = asyncio.new_event_loop()

    def ask(self, target, body, headers=(), more=()):
        request = self._server.request(*target, body, headers=headers)
        answer = self._loop.run_until_complete(request)
        self.statuses[answer.status] += 1
        assert answer.status in (200, 400, 404, 405, 413, *more), answer
        if answer.status != 200:
            assert answer.error
            assert "Traceback" not in answer.error
        return answer

    def close(self):
        self._loop.close()


@pytest.fixture
def asker(pets):
    with contextlib.closing(Asker(pets)) as asker:
        yield asker


@pytest.mark.slow
def test_ten_thousand_odd_requests_break_nothing(asker):
    @drawn(5_000)
    @given(target=odd_predictions.TARGETS, body=odd_predictions.BODIES)
    def ask(target, body):
        # To draw a body takes longer than to answer it: cut, it is another.
        asker.ask(target, body)
        asker.ask(target, body[: len(body) // 2])

    ask()
    statuses = asker.statuses
    assert statuses.total() == 10_000
    assert min(statuses[200], statuses[400]) > 500


@pytest.mark.slow
def test_ten_thousand_odd_inferences_break_nothing(asker):
    @drawn(500)
    @given(odd_inferences.INFERENCES)
    def ask(inference):
        target, request = inference
        for body, headers in odd_inferences.variants(*request):
            answer = asker.ask(target, body, headers, more=[415])
            length = answer.headers.get("inference-header-content-length")
            if target[1].endswith("/infer") and answer.status == 200:
                outputs = json.loads(answer.body[: length and int(length)])
                assert len(outputs["outputs"]) > 0

    ask()
    statuses = asker.statuses
    assert statuses.total() == 500 * odd_inferences.VARIANTS == 10_000
    assert min(statuses[200], statuses[400], statuses[404]) > 300
    assert statuses[415] > 100
