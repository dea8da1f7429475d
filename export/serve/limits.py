"""What the server accepts, and how it refuses the rest."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Limits:
    """The bounds of a server.

    Args:
        max_batch: Images computed together.
        batch_timeout_ms: How long a batch waits for more images.
        max_images: Images of one request.
        max_megabytes: Body of one request.
        max_megapixels: Encoded images of one request, all together.
        max_queue: Requests under way; one more is refused.
        timeout_s: Seconds for headers, for a body, for an answer and for its
            reading, each.
    """

    # Less than there are clients at busy times: while some of them are being
    # computed, the requests of the others are read and their answers written.
    max_batch: int = 16
    batch_timeout_ms: float = 1.0
    max_images: int = 256
    max_megabytes: float = 10.0
    max_megapixels: float = 16.0
    max_queue: int = 128
    timeout_s: float = 30.0


class Refusal(Exception):
    """An answer that is an error.

    Args:
        status: The HTTP status code.
        message: What is wrong, for the client to read.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message
