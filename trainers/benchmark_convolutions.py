"""The aide convolutions of a network, alone and within its training step."""

from typing import NamedTuple

import keras

from encapnet_tf.layers import CapConv, GroupedConv2D
from trainers import benchmark_calls as calls
from trainers.benchmark_results import Measurement
from trainers.recipe import make_recipe
from trainers.step_trace import outline_model


class Aide(NamedTuple):
    """The aide convolution of a capConv layer.

    Attributes:
        maps: Height, width and channels of what it reads.
        filters: Channels of what it makes.
        kernel_size: Its side.
        stride: In both directions.
        skip_own_block: As for `GroupedConv2D`.
    """

    maps: tuple[int, int, int]
    filters: int
    kernel_size: int
    stride: int
    skip_own_block: int | None

    def __str__(self):
        """Writes it as 7×7/2 256→512 on 8×8."""
        size, (height, width, channels) = self.kernel_size, self.maps
        stride = f"/{self.stride}" if self.stride > 1 else ""
        return (
            f"{size}×{size}{stride} {channels}→{self.filters} "
            f"on {height}×{width}"
        )

    @property
    def multiply_adds(self) -> int:
        """Of a forward pass, per image."""
        height, width, channels = self.maps
        places = -(-height // self.stride) * -(-width // self.stride)
        return places * self.filters * self.kernel_size**2 * channels

    def layer(self) -> GroupedConv2D:
        """Returns such a convolution."""
        return GroupedConv2D(
            self.filters,
            self.kernel_size,
            self.stride,
            skip_own_block=self.skip_own_block,
        )


def aides(variant: str) -> list[Aide]:
    """Returns the aide convolutions of a network, each shape once."""
    found = []
    for layer in outline_model(variant).layers:
        if isinstance(layer, CapConv) and layer.branches == "master_aide":
            maps, conv = keras.tree.flatten(layer.input)[0], layer.aide
            found.append(
                Aide(
                    tuple(maps.shape[1:]),
                    conv.filters,
                    conv.kernel_size,
                    conv.stride,
                    conv.skip_own_block,
                )
            )
    return list(dict.fromkeys(found))


def measure_convolutions(
    variant: str, batch: int, seconds: float, multiply_adds: int
) -> list[Measurement]:
    """Times the aide convolutions of a network alone, and its whole step.

    Args:
        variant: The network.
        batch: Images in a step.
        seconds: About how long to time each.
        multiply_adds: Of a training step.
    """
    recipe = make_recipe({"variant": variant, "batch_size": batch})
    network = calls.network(recipe)
    contestants = {(variant, "train"): network["train"]}
    counts = {(variant, "train"): multiply_adds}
    for aide in aides(variant):
        forward = batch * aide.multiply_adds
        # One for the gradient of the maps, one for that of the kernel.
        counts[str(aide), "forward"] = forward
        counts[str(aide), "backward"] = 2 * forward
        for action, call in calls.convolution(
            aide.layer(), (batch, *aide.maps)
        ).items():
            contestants[str(aide), action] = call
    times, product = calls.in_turn(contestants, seconds)
    return [
        Measurement(
            "convolutions",
            *key,
            batch,
            spent,
            product,
            images=batch,
            multiply_adds=counts[key],
        )
        for key, spent in times.items()
    ]
