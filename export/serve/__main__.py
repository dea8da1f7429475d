"""Serves an exported model, with a page to try it.

    python -m export.serve --model=exported/encapnet
    python -m export.serve --model=exported/encapnet --host=0.0.0.0 --port=80

TensorFlow Serving's REST protocol (`POST /v1/models/NAME:predict`), KServe's
Open Inference Protocol v2 (`POST /v2/models/NAME/infer`), a page at `/`,
`/healthz` and `/metrics`. A newer version that appears in the folder is taken
up while the server runs.
"""

import pathlib

from absl import flags

from export.serve.labels import check_labels, parse_labels
from export.serve.limits import Limits
from export.serve.origins import check_origins
from export.serve.port import take
from export.version.folders import check_has_versions
from trainers import cli
from trainers.tensorflow_start import start_tensorflow

# Shown by --help; the limits by --helpfull.
FIRST = ("model", "name", "host", "port")
_DEFAULT = Limits()


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags of this program."""
    kwargs = {"flag_values": values}
    flags.DEFINE_string(
        "model", None, "The folder that `python -m export` wrote.", **kwargs
    )
    flags.DEFINE_string(
        "name",
        None,
        "The model's name; by default the folder's.",
        **kwargs,
    )
    flags.DEFINE_string(
        "host", "127.0.0.1", "Address to listen on; 0.0.0.0 for all.", **kwargs
    )
    flags.DEFINE_integer(
        "port", 8501, "Port; 0 takes a free one.", 0, 65535, **kwargs
    )
    flags.DEFINE_list(
        "labels",
        [],
        "Names of versions that stay loaded: --labels=stable=1,canary=2.",
        **kwargs,
    )
    flags.DEFINE_list(
        "cors",
        [],
        "Origins whose pages in a browser may ask: "
        "--cors=https://example.org, or * for all.",
        **kwargs,
    )
    flags.DEFINE_integer(
        "max_batch",
        _DEFAULT.max_batch,
        "Most images computed together.",
        1,
        1024,
        **kwargs,
    )
    flags.DEFINE_float(
        "batch_timeout_ms",
        _DEFAULT.batch_timeout_ms,
        "How long a batch waits for more images, in milliseconds.",
        0,
        10_000,
        **kwargs,
    )
    flags.DEFINE_integer(
        "max_images",
        _DEFAULT.max_images,
        "Most images in one request.",
        1,
        **kwargs,
    )
    flags.DEFINE_float(
        "max_megabytes",
        _DEFAULT.max_megabytes,
        "Largest body of a request, in MB.",
        0,
        **kwargs,
    )
    flags.DEFINE_float(
        "max_megapixels",
        _DEFAULT.max_megapixels,
        "Most megapixels in one request, all images together.",
        0,
        **kwargs,
    )
    flags.DEFINE_integer(
        "max_queue",
        _DEFAULT.max_queue,
        "Most requests under way; more are answered with 429.",
        1,
        4096,
        **kwargs,
    )
    flags.DEFINE_float(
        "timeout_s",
        _DEFAULT.timeout_s,
        "Seconds allowed for headers, a body, an answer, and for reading it.",
        0.1,
        **kwargs,
    )


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Serves until SIGTERM or Ctrl-C."""
    cli.take_no_arguments(arguments)
    if not values.model:
        raise ValueError(
            "`--model` must name a folder that `python -m export` wrote. "
            "Received: nothing. Try --model=exported/encapnet."
        )
    folder = pathlib.Path(values.model)
    name = values.name or folder.resolve().name
    if set(name) & set("/:"):
        raise ValueError(
            "`--name` must fit between the slashes of /v1/models/NAME:predict. "
            f"Received: --name={name}. Leave / and : out."
        )
    check_has_versions(folder)
    labels = parse_labels(values.labels)
    check_labels(labels, folder)
    check_origins(values.cors)
    limits = Limits(**{name: values[name].value for name in vars(_DEFAULT)})
    listener = take(values.host, values.port)
    start_tensorflow()
    from export.serve.server import serve

    serve(folder, name, listener, limits, labels, values.cors)
    return 0


if __name__ == "__main__":
    define()
    cli.run(main)
