"""The program: its refusals, its life under load, its end."""

import asyncio
import http.client
import json
import shutil
import signal
import socket
import threading
import time
import urllib.request

import pytest
from absl import flags

from benchmarks import served as clients
from benchmarks.serving_load import GROWTH, load_server
from export.serve import __main__ as program
from export.serve.port import take
from tests.export.serve import served


def test_a_connection_that_sends_nothing_is_closed(folder):
    with (
        served.listening(served.Served(folder).app, patience=1) as s,
        socket.create_connection(("127.0.0.1", s.port), 10) as silent,
        socket.create_connection(("127.0.0.1", s.port), 10) as slow,
        socket.create_connection(("127.0.0.1", s.port), 10) as once,
    ):
        for character in b"GET /hea":
            slow.send(bytes([character]))
            time.sleep(0.1)
        once.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET")
        assert silent.recv(1) == b""
        assert slow.recv(1) == b""
        text = b""
        while piece := once.recv(1000):
            text += piece
        assert text.startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_its_answer_is_cut_off():
    """Nothing else would end the wait for it."""
    ended = threading.Event()

    async def app(scope, receive, send):
        if scope["type"] == "http":
            start = {"type": "http.response.start", "status": 200}
            await send(start | {"headers": [(b"content-length", b"200000000")]})
            for _ in range(200):
                body = bytes(1_000_000)
                await send(
                    {"type": "http.response.body", "body": body}
                    | {"more_body": True}
                )
            ended.set()

    with (
        served.listening(app, patience=0.5) as server,
        socket.create_connection(("127.0.0.1", server.port), 10) as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert ended.wait(10)


def test_a_long_body_is_refused_in_words_though_it_is_still_coming(folder):
    app = served.Served(folder, max_megabytes=0.01).app
    with served.listening(app) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/v1/models/pets:predict", b" " * 5_000_000)
        answer = connection.getresponse()
        assert answer.status == 413
        assert "A body may have 0.01 MB" in json.loads(answer.read())["error"]
        connection.close()


def test_answers_come_without_nagle_s_delay():
    """Which holds small answers back for some 40 ms."""
    listener = take("127.0.0.1", 0)
    options = []

    def connected(reader, writer):
        accepted = writer.get_extra_info("socket")
        options.append(
            accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        )
        writer.write(b".")
        writer.close()

    async def connect():
        server = await asyncio.start_server(connected, sock=listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        await reader.read(1)
        writer.close()
        server.close()

    asyncio.run(connect())
    assert options == [1]


def run(*arguments):
    values = flags.FlagValues()
    program.define(values)
    return program.main(values(["serve", *arguments])[1:], values)


def test_refusals(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = {
            ("--name=a/b", "--port=0"): "Received: --name=a/b",
            ("--model=none", "--port=0"): "Received: --model=none, which is",
            (f"--model={folder}", f"--port={port}"): f"--port={port} .Address",
            (f"--model={folder}", "--name=a/b"): "Received: --name=a/b",
            (f"--model={folder}", "--labels=a"): "a version each. Received: a.",
            (
                f"--model={folder}",
                "--labels=a=1,b=9",
            ): "Received: b=9; .* has 1",
            (f"--model={folder}", "--cors=a.org"): "or origins.*: a.org. Try",
            ("folder",): "This program takes flags only. Received: folder",
        }
        for arguments, words in cases.items():
            with pytest.raises(ValueError, match=words):
                run(*arguments)


class Load:
    """Clients that ask without pause, and remember what they were told."""

    def __init__(self, port, outputs):
        self.answers, self.problems = [], []
        self._outputs = outputs
        self._stopped = threading.Event()
        images = served.images(16)
        self._requests = [
            clients.post("pets", {"instances": [image.tolist()]})
            for image in images
        ]
        self._threads = [
            threading.Thread(target=lambda n=n: asyncio.run(self._ask(port, n)))
            for n in range(4)
        ]
        for thread in self._threads:
            thread.start()

    async def _ask(self, port, place):
        connection = clients.Connection(port)
        while not self._stopped.is_set():
            place = (place + 1) % len(self._requests)
            try:
                status, body = await connection.ask(self._requests[place])
                assert status == 200, body
                (row,) = json.loads(body)["predictions"]
                self.answers.append(self._version(place, row))
            except (OSError, EOFError, AssertionError) as problem:
                self.problems.append(problem)
                return
        connection.close()

    def _version(self, place, row):
        """Which version's answer it is."""
        (number,) = (
            number
            for number, outputs in self._outputs.items()
            if abs(outputs["scores"][place] - row["scores"]).max() < 1e-5
        )
        return number

    def stop(self):
        self._stopped.set()
        for thread in self._threads:
            thread.join()


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_a_new_version_under_load_fails_no_request(folder, exported):
    outputs = {
        number: served.offline(exported / number, images=served.images(16))
        for number in "12"
    }
    with clients.serving(folder) as server:
        load = Load(server.port, outputs)
        wait_until(lambda: len(load.answers) > 100)
        shutil.copytree(exported / "2", folder / ".writing")
        (folder / ".writing").rename(folder / "2")
        wait_until(lambda: "2" in load.answers[-1:] or load.problems)
        (folder / "3").mkdir()
        count = len(load.answers)
        wait_until(lambda: b'"version": 3' in log(folder) or load.problems)
        wait_until(lambda: len(load.answers) > count + 100 or load.problems)
        load.stop()
    assert load.problems == []
    assert load.answers[0] == "1"
    assert set(load.answers[-50:]) == {"2"}
    lines = [json.loads(line) for line in log(folder).splitlines()]
    events = [line["event"] for line in lines]
    assert events.count("version loaded") == 2
    assert events.count("version not loaded") == 1
    assert events.count("request") >= len(load.answers)


def log(folder):
    return (folder.parent / "serve.log").read_bytes()


@pytest.mark.slow
def test_a_signal_lets_requests_finish(folder):
    """A request whose body is still coming when the signal does."""
    request = clients.post("pets", {"instances": served.images(1).tolist()})
    with clients.serving(folder) as server:
        address = ("127.0.0.1", server.port)
        with socket.create_connection(address, 30) as late:
            late.sendall(request[:-100])
            wait_until(lambda: "encapnet_queue 1.0" in metrics(server.port))
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: refuses(address))
            late.sendall(request[-100:])
            answer = b"".join(iter(lambda: late.recv(10_000), b""))
        assert server.process.wait(60) == 0
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"predictions"' in answer


def metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return answer.read().decode()


def refuses(address):
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.slow
def test_mixed_load_breaks_nothing(folder):
    load = load_server(folder, 20)
    assert load.problems == []
    assert min(load.done.values()) > 0
    assert load.growth() < GROWTH
