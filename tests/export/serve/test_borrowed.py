"""What the server borrows of others, and what broke if it is gone."""

import asyncio
import contextlib

import numpy as np
import tensorflow as tf
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from export.serve.model.session_callable import session_callable

UVICORN = (
    "uvicorn's HTTP connection has changed: export/serve/uvicorn_connection.py "
    "overrides its methods and reads its cycle."
)
SESSION = (
    "TensorFlow's sessions have changed: export/serve/model/"
    "session_callable.py calls one of their private methods."
)


def test_uvicorn_has_the_connection_that_is_extended():
    for name in (
        "connection_made", "connection_lost", "pause_writing",
        "resume_writing", "on_response_complete",
    ):  # fmt: skip
        assert callable(getattr(H11Protocol, name, None)), UVICORN
    config = uvicorn.Config(lambda: None, log_config=None)
    state = uvicorn.server.ServerState()
    # A loop of its own: other tests leave their thread without one.
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        connection = H11Protocol(config, state, {}, loop)
    for name in ("cycle", "transport", "loop"):
        assert hasattr(connection, name), UVICORN
    names = RequestResponseCycle.__init__.__code__.co_names
    assert "response_complete" in names, UVICORN


def test_a_session_makes_callables_of_options():
    with tf.Graph().as_default() as graph:
        number = tf.compat.v1.placeholder(tf.float32, ())
        double = 2 * number
    session = tf.compat.v1.Session(graph=graph)
    assert hasattr(session, "_make_callable_from_options"), SESSION
    call = session_callable(session, [number], [double])
    (result,) = call(np.float32(1.5))
    assert result == 3, SESSION
