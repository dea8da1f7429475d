"""What the server counts, in Prometheus' words."""

import prometheus_client

from export.serve.model.served import ServedModel

# Seconds; a request on two cores takes some milliseconds.
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_IMAGES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The counters of one server.

    Args:
        model: The model being served.
    """

    def __init__(self, model: ServedModel):
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        self.requests = prometheus_client.Counter(
            "encapnet_requests",
            "Requests answered.",
            ("path", "status"),
            registry=self._registry,
        )
        self.seconds = prometheus_client.Histogram(
            "encapnet_request_seconds",
            "From a request's first byte to its answer's last.",
            ("path",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.batch = prometheus_client.Histogram(
            "encapnet_batch_images",
            "Images computed together with those of a request.",
            buckets=_IMAGES,
            registry=self._registry,
        )
        self.queue = prometheus_client.Gauge(
            "encapnet_queue",
            "Requests for predictions that are under way.",
            registry=self._registry,
        )
        version = prometheus_client.Gauge(
            "encapnet_model_version",
            "The version that answers.",
            registry=self._registry,
        )
        version.set_function(lambda: model.current.number)

    def text(self) -> bytes:
        """Returns all of them in Prometheus' text format."""
        return prometheus_client.generate_latest(self._registry)
