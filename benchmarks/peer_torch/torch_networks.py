"""The networks in plain PyTorch, for `benchmarks.peer_torch`.

Our own writing of what the paper says, in the usual way: modules, native
grouped convolutions, votes as a tensor. Not crippled: the votes lie as
(B, M, N, E), so that routing multiplies matrices and moves nothing. Modules
carry the names of our layers, so that weights can be handed over by name.
"""

import torch
from torch import nn
from torch.nn import functional


def build(config, weights):
    """Returns the network of a config with our weights, by their paths."""
    routed = hasattr(config, "routing")
    network = CapNet(config) if routed else EncapNet(config)
    state = network.state_dict()
    tracked = {key for key in state if key.endswith("num_batches_tracked")}
    given = dict(_translate(path, value) for path, value in weights.items())
    network.load_state_dict(given | {key: state[key] for key in tracked})
    return network


def _translate(path, value):
    """From the path and layout of a Keras weight to PyTorch's."""
    *owner, name = path.split("/")
    value = torch.tensor(value)
    if value.ndim == 4:
        value, name = value.permute(3, 2, 0, 1).contiguous(), "weight"
    names = {
        "gamma": "weight",
        "beta": "bias",
        "moving_mean": "running_mean",
        "moving_variance": "running_var",
    }
    return ".".join((*owner, names.get(name, name))), value


def squash(capsules, dim):
    """|s|²/(1+|s|²) · s/|s|."""
    length = torch.linalg.vector_norm(capsules, dim=dim, keepdim=True)
    return capsules * (length / (1 + length**2))


def convolution(inputs, outputs, kernel_size, stride=1, groups=1):
    """A convolution padded by (k−1)/2."""
    pad = (kernel_size - 1) // 2
    return nn.Conv2d(
        inputs, outputs, kernel_size, stride, padding=pad, groups=groups
    )


def norm(channels):
    """The paper's batch normalisation."""
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=0.1)


def in_a_row(maps, num_capsules):
    """Capsules `(B, N, D)` of maps `(B, C·D, H, W)`."""
    capsules = maps.unflatten(1, (num_capsules, -1)).flatten(3)
    return capsules.transpose(2, 3).flatten(1, 2)


class ConvNorm(nn.Module):
    """Convolution → BN → ReLU."""

    def __init__(self, inputs, outputs, kernel_size, stride=1):
        super().__init__()
        self.conv = convolution(inputs, outputs, kernel_size, stride)
        self.norm = norm(outputs)

    def forward(self, maps):
        """From maps to maps."""
        return torch.relu(self.norm(self.conv(maps)))


class Stem(nn.Module):
    """Convolution → BN → ReLU, several times."""

    def __init__(self, config):
        super().__init__()
        self.depth = len(config.stem)
        channels = config.input_shape[-1]
        for number, (width, stride) in enumerate(config.stem, start=1):
            layer = ConvNorm(channels, width, 3, stride)
            setattr(self, f"stem{number}", layer)
            channels = width
        self.channels = channels

    def enter(self, maps):
        """From images to maps."""
        for number in range(1, self.depth + 1):
            maps = getattr(self, f"stem{number}")(maps)
        return maps


class CapConv(nn.Module):
    """Master and aide branch, coefficients from the other one (cross)."""

    def __init__(
        self, num_capsules, inputs, outputs, kernel_size, stride, aide, skip
    ):
        super().__init__()
        self.num_capsules = num_capsules
        self.master = convolution(
            inputs, outputs, kernel_size, stride, num_capsules
        )
        if skip:
            self.skip = convolution(inputs, outputs, 3, stride)
        if aide:
            self.aide = convolution(inputs, outputs, kernel_size + 4, stride)
            self.master_norm, self.aide_norm = norm(outputs), norm(outputs)
            self.coefficients = convolution(
                2 * outputs, 2 * num_capsules, 3, 1, 2 * num_capsules
            )
        self.norm = norm(outputs)

    def _activate(self, maps):
        capsules = torch.relu(maps).unflatten(1, (self.num_capsules, -1))
        return squash(capsules, dim=2).flatten(1, 2)

    def forward(self, inputs, skip=None):
        """From lower to higher capsules."""
        maps = self.master(inputs)
        if hasattr(self, "aide"):
            master = self._activate(self.master_norm(maps))
            aide = self._activate(self.aide_norm(self.aide(inputs)))
            weights = self.coefficients(torch.cat((master, aide), 1))
            of_master, of_aide = weights.unsqueeze(2).chunk(2, dim=1)
            sizes = (self.num_capsules, -1)
            maps = of_aide * master.unflatten(1, sizes)
            maps = maps + of_master * aide.unflatten(1, sizes)
            maps = maps.flatten(1, 2)
        if hasattr(self, "skip"):
            maps = maps + self.skip(inputs)
        if skip is not None:
            maps = maps + skip
        return self._activate(self.norm(maps))


class CapFC(nn.Module):
    """out[j, d] = Σ_i W[d, i, j] v[i, d], then squash."""

    def __init__(self, dim, num_lower, num_classes):
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(dim, num_lower, num_classes))

    def forward(self, capsules):
        """From lower to class capsules."""
        sums = torch.bmm(capsules.permute(2, 0, 1), self.kernel)
        return squash(sums.permute(1, 2, 0), dim=-1)


class EncapNet(Stem):
    """The variants with an aide over all channels and coefficients cross."""

    def __init__(self, config):
        super().__init__(config)
        self.config = config
        side, channels = config.input_shape[0], self.channels
        for _, stride in config.stem:
            side //= stride
        for module, count in enumerate(config.type2_layers):
            name, aide = f"module{module + 1}", config.aide[module]
            sizes = (config.num_capsules, channels, 2 * channels)
            stride = config.strides[module]
            skip = config.skip[module] in ("type1", "both")
            type1 = CapConv(*sizes, 3, stride, aide != "none", skip)
            setattr(self, f"{name}_type1", type1)
            side, channels = side // stride, 2 * channels
            sizes = (config.num_capsules, channels, channels)
            for number in range(1, count + 1):
                layer = CapConv(*sizes, 1, 1, aide == "all", False)
                setattr(self, f"{name}_type2_{number}", layer)
        num_lower = side * side * config.num_capsules
        dim = channels // config.num_capsules
        self.class_capsules = CapFC(dim, num_lower, config.num_classes)

    def forward(self, images):
        """From images to lengths of the class capsules."""
        maps = self.enter(images)
        for module, count in enumerate(self.config.type2_layers):
            name = f"module{module + 1}"
            type1 = maps = getattr(self, f"{name}_type1")(maps)
            for number in range(1, count + 1):
                last = number == count
                layer = getattr(self, f"{name}_type2_{number}")
                maps = layer(maps, type1 if last else None)
        capsules = in_a_row(maps, self.config.num_capsules)
        return torch.linalg.vector_norm(self.class_capsules(capsules), dim=-1)


class Routed(nn.Module):
    """Votes of lower capsules, then dynamic or EM routing."""

    def __init__(self, routing, channels, dim, num_higher, higher_dim):
        super().__init__()
        self.sizes = (channels, num_higher, higher_dim)
        count = channels * num_higher * higher_dim
        self.kernel = nn.Parameter(torch.empty(dim, count))
        self.bias = nn.Parameter(torch.empty(count))
        if routing == "em":
            self.beta_v = nn.Parameter(torch.empty(num_higher))
            self.beta_a = nn.Parameter(torch.empty(num_higher))

    def forward(self, lower, activations=None):
        """From lower capsules `(B, N, D)` to higher ones `(B, M, E)`."""
        lower = lower.unflatten(1, (self.sizes[0], -1))
        kernel = self.kernel.unflatten(1, self.sizes)
        bias = self.bias.unflatten(0, self.sizes)
        votes = torch.einsum("bcpd,dcme->bmcpe", lower, kernel)
        votes = (votes + bias.transpose(0, 1)[:, :, None]).flatten(2, 3)
        if activations is None:
            return dynamic_routing(votes), None
        return em_routing(votes, activations, self.beta_v, self.beta_a)


def dynamic_routing(votes, num_iterations=3):
    """Softmax over the lower capsules; votes `(B, M, N, E)`."""
    logits = torch.zeros_like(votes[..., 0])
    for iteration in range(num_iterations):
        coefficients = torch.softmax(logits, dim=-1)[:, :, None]
        capsules = squash(torch.matmul(coefficients, votes), dim=-1)
        if iteration < num_iterations - 1:
            agreement = torch.matmul(votes, capsules.transpose(2, 3))
            logits = logits + agreement.squeeze(-1)
    return capsules.squeeze(2)


def em_routing(votes, activations, beta_v, beta_a, num_iterations=3):
    """Gaussians, densities as logarithms; votes `(B, M, N, E)`."""
    assignments = torch.full_like(votes[..., 0], 1 / votes.shape[1])
    for iteration in range(num_iterations):
        weights = assignments * activations[:, None]
        masses = weights.sum(-1)
        weights = (weights / masses[..., None])[:, :, None]
        means = torch.matmul(weights, votes)
        distances = (votes - means) ** 2
        variances = torch.matmul(weights, distances)
        if iteration == 0:
            narrowest = (1e-6 * variances).clamp_min(1e-12)
        variances = torch.maximum(variances, narrowest)
        log_variances = torch.log(variances).squeeze(2)
        costs = (0.5 * log_variances + beta_v[:, None]).sum(-1) * masses
        lowest, highest = costs.aminmax(dim=-1, keepdim=True)
        costs = 10 * (costs - lowest) / (highest - lowest) - 5
        scores = (1 + iteration) * (beta_a - costs)
        if iteration < num_iterations - 1:
            inverse = (1 / variances).transpose(2, 3)
            squares = torch.matmul(distances, inverse).squeeze(-1)
            log_density = -0.5 * (squares + log_variances.sum(-1)[..., None])
            log_density = log_density + functional.logsigmoid(scores)[..., None]
            assignments = torch.softmax(log_density, dim=1)
    return means.squeeze(2), torch.sigmoid(scores)


class CapNet(Stem):
    """The routed baseline."""

    def __init__(self, config):
        super().__init__(config)
        self.config = config
        side = config.input_shape[0]
        for _, stride in config.stem:
            side //= stride
        if config.routing == "em":
            self.activations = ConvNorm(self.channels, config.num_capsules, 3)
        self.middle_capsules = Routed(
            config.routing,
            config.num_capsules,
            self.channels // config.num_capsules,
            config.middle_capsules * side * side,
            config.capsule_dim,
        )
        self.class_capsules = Routed(
            config.routing,
            config.middle_capsules,
            config.capsule_dim,
            config.num_classes,
            config.capsule_dim,
        )

    def forward(self, images):
        """From images to lengths of the class capsules."""
        maps = self.enter(images)
        activations = None
        if self.config.routing == "em":
            activations = self.activations(maps).flatten(1)
        lower = in_a_row(maps, self.config.num_capsules)
        middle, activations = self.middle_capsules(lower, activations)
        capsules, _ = self.class_capsules(middle, activations)
        return torch.linalg.vector_norm(capsules, dim=-1)
