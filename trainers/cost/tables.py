"""Costs as text tables: aligned, units in the headings, no prints."""

from encapnet_tf import list_variants
from trainers.cost.step_cost import StepCost, count_parameters
from trainers.cost.step_trace import outline_model
from trainers.progress import ShareProgress
from trainers.tables import ruled


def layers_table(cost: StepCost) -> str:
    """Lays out one line per layer."""
    rows = [
        (
            layer.name,
            layer.kind,
            shape_text(layer.output_shape),
            f"{layer.parameters:,}",
            f"{layer.multiply_adds:,}",
            mib(layer.kept_bytes),
        )
        for layer in cost.layers
    ]
    headings = [
        ("", "", "", "", "multiply-adds", "kept for"),
        ("layer", "kind", "output", "parameters", "per image", "backward, MiB"),
    ]
    return ruled(headings, rows, "<<>>>>")


def totals(cost: StepCost) -> str:
    """Lays out the sums and the parts of the memory."""
    rows = [
        ("parameters, trainable", f"{cost.parameters:,}"),
        ("  without training-only units", f"{cost.inference_parameters:,}"),
        ("parameters, not trained", f"{cost.other_parameters:,}"),
        ("multiply-adds per image, forward", f"{cost.multiply_adds:,}"),
        ("  without training-only units", f"{cost.inference_multiply_adds:,}"),
        ("  forward and backward", f"{cost.step_multiply_adds:,}"),
    ]
    memory = [
        ("weights", mib(cost.weight_bytes)),
        ("gradients", mib(cost.gradient_bytes)),
        ("optimiser slots (Adam: 2)", mib(cost.slot_bytes)),
        ("activations kept for backward", mib(cost.kept_bytes)),
        ("largest transient", mib(cost.transient_bytes)),
        ("TensorFlow's graph and kernels", mib(cost.runtime_bytes)),
        ("total", mib(cost.memory_bytes)),
    ]
    heading = f"memory of a step at batch {cost.batch_size:,}"
    return "\n\n".join(
        (
            ruled([("total", "")], rows, "<>"),
            ruled([(heading, "MiB")], memory, "<>"),
        )
    )


def variants_table() -> str:
    """Lays out every variant with its parameters."""
    rows = []
    for variant in ShareProgress("counting").each(list_variants()):
        model = outline_model(variant)
        parameters = count_parameters(model)
        rows.append(
            (
                variant,
                shape_text(model.input_shape[1:]),
                f"{model.output_shape[-1]}",
                f"{parameters.trainable:,}",
                f"{parameters.inference:,}",
            )
        )
    headings = [
        ("", "", "", "", "parameters without"),
        ("variant", "images", "classes", "parameters", "training-only units"),
    ]
    return ruled(headings, rows, "<<>>>")


def shape_text(sides) -> str:
    """Writes a shape: 32x32x3."""
    return "x".join("?" if side is None else str(side) for side in sides)


def mib(size: int) -> str:
    """Writes bytes as MiB, without the unit."""
    return f"{size / 2**20:,.1f}"


def gib(size: int) -> str:
    """Writes bytes as GiB, with the unit."""
    return f"{size / 2**30:,.1f} GiB"
