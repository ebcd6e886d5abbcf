"""Makes golden values of the networks of the paper's LIDC experiments: unet_small, unet_lidc, prob_unet, phiseg (.safetensors).

unet.py CHECKOUT FOLDER writes them into FOLDER. CHECKOUT is a copy of github.com/MiguelMonteiro/PHiSeg-code, the code of
these experiments, of which the networks in phiseg/model_zoo are run as they are. They were written for TensorFlow 1, which
this script does not need: the few layers that they call are written below for torch 2.11, in double precision and in
TensorFlow's order b, h, w, c. Two of them are ours and not TensorFlow's: bilinear interpolation puts voxels at the centers
of their squares and not at the corners, and softplus, which gives deviations, adds 1e-4.
"""
import contextlib, importlib.util, json, math, pathlib, re, struct, sys, types
import torch
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class Variables:
    """The variables of a network by their TensorFlow names, made when they are first asked for."""

    def __init__(self, make, levels, classes, is_latent=False):
        self.make, self.levels, self.classes, self.is_latent = make, levels, classes, is_latent
        self.all, self.scopes, self.noise = {}, [], {}
        self.training, self.decay = False, 0.99

    def get(self, name, *shape):
        name = "/".join([*self.scopes, name])
        if name not in self.all:
            self.all[name] = self.make(name, shape)
            self.all[name].requires_grad_("moving" not in name)
        return self.all[name]

    @contextlib.contextmanager
    def scope(self, name):
        self.scopes.append(name)
        yield types.SimpleNamespace()
        self.scopes.pop()


network = None  # The variables of the network that is being run.


def channels_first(function):
    return lambda x, *args, **kwargs: function(x.permute(0, 3, 1, 2), *args, **kwargs).permute(0, 2, 3, 1)


def batch_norm(x, **_):
    with network.scope("batch_norm"):
        gamma, beta, mean, variance = [network.get(n, x.shape[-1]) for n in ("gamma", "beta", "moving_mean", "moving_variance")]
    return channels_first(F.batch_norm)(x, mean, variance, gamma, beta, network.training, 1 - network.decay, 1e-3)


def convolution(x, name, num_filters, kernel_size=(3, 3), activation=F.relu, normalisation=None, **_):
    with network.scope(name):
        kernel = network.get("W", *kernel_size, x.shape[-1], num_filters).permute(3, 2, 0, 1)
        bias = None if normalisation else network.get("b", num_filters)
        x = channels_first(F.conv2d)(x, kernel, bias, padding="same")
        return activation(normalisation(x) if normalisation else x)


def upsample(x, name, factor):
    return channels_first(F.interpolate)(x, scale_factor=factor, mode="bilinear", align_corners=False)


class Distribution:
    """Keeps what the network gives; a sample of it is asked for, and not needed."""

    def __init__(self, loc, cov_factor, cov_diag):
        self.parts = loc, cov_diag, cov_factor

    def rsample(self, _):
        return self.parts[0]


class Sizes(tuple):
    def as_list(self):
        return list(self)


def resize(x, size, method):
    return channels_first(F.interpolate)(x, size=list(size), mode=method)


def authors_code(checkout):
    """The authors' modules likelihoods, priors and posteriors."""

    def module(name, **members):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
        return sys.modules[name]

    torch.Tensor.get_shape = lambda x: Sizes(x.shape)
    module(
        "tensorflow",
        variable_scope=lambda name: network.scope(name),
        reshape=lambda x, shape: x.reshape(tuple(shape)),
        concat=lambda maps, axis, name=None: torch.cat(maps, axis),
        tile=lambda x, times: x.repeat(*times),
        shape=lambda x: x.shape,
        stack=tuple,
        exp=torch.exp,
        identity=lambda x: x,
        float32=None,
        random_normal=lambda shape, *_, **__: network.noise[tuple(shape)],
        nn=types.SimpleNamespace(softplus=lambda x: F.softplus(x) + 1e-4),
        image=types.SimpleNamespace(resize_images=resize, ResizeMethod=types.SimpleNamespace(NEAREST_NEIGHBOR="nearest")),
    )
    layers = module(
        "tfwrapper.layers",
        conv2D=convolution,
        averagepool2D=lambda x: channels_first(F.avg_pool2d)(x, 2),
        global_averagepool2D=lambda x: x.mean((1, 2)),
        bilinear_upsample2D=upsample,
        crop_and_concat=lambda maps, axis: torch.cat(maps, axis),
    )
    normalisation = module("tfwrapper.normalisation", batch_norm=batch_norm)
    module("tfwrapper", layers=layers, normalisation=normalisation, utils=None)
    if importlib.util.find_spec("numpy") is None:
        module("numpy", prod=math.prod)
    code = []
    for name in ("likelihoods", "priors", "posteriors"):
        spec = importlib.util.spec_from_file_location(name, checkout / f"phiseg/model_zoo/{name}.py")
        code.append(importlib.util.module_from_spec(spec))
        spec.loader.exec_module(code[-1])
    code[0].LowRankMultivariateNormal = Distribution
    return code


# Where our names have layers of theirs, by the numbers in their names; `l` is the number of levels.
PLACES = {
    r"likelihood/encoder/conv_N_N": lambda l, i, k: f"backbone.down.{i}.{k - 1}.conv",
    r"likelihood/decoder/conv_N_N": lambda l, i, k: f"backbone.up.{l - 2 - i}.{k - 1}.conv",
    r"likelihood/recomb_N": lambda l, i: f"backbone.pointwise.{i}.conv",
    r"likelihood/mean": lambda l: "head.mean",
    r"likelihood/diag": lambda l: "head.log_diagonal",
    r"likelihood/factor": lambda l: "head.factor",
    # The probabilistic U-Net.
    r"likelihood/prediction": lambda l: "head.mean",
    r"(prior|posterior)/conv_N_N": lambda l, net, i, k: f"head.{net}.down.{i}.{k - 1}.conv",
    r"(prior|posterior)/pre_mu": lambda l, net: f"head.{net}.mean",
    r"(prior|posterior)/pre_sigma": lambda l, net: f"head.{net}.deviation",
    # PHiSeg. Where i and j differ, nothing uses the result.
    r"(prior|posterior)/zN_pre_N": lambda l, net, i, k: f"head.{net}.down.{i}.{k - 1}.conv",
    r"(prior|posterior)/zN_ups_to_N_c_N": lambda l, net, i, j, k: f"head.{net}.below.{i - 1}.{k - 1}.conv" if i == j else None,
    r"(prior|posterior)/zN_input_N": lambda l, net, i, k: f"head.{net}.joined.{i}.{k - 1}.conv",
    r"(prior|posterior)/zN_mu": lambda l, net, i: f"head.{net}.mean.{i}",
    r"(prior|posterior)/zN_sigma": lambda l, net, i: f"head.{net}.deviation.{i}",
    r"likelihood/zN_post_N": lambda l, i, k: f"head.decoder.rise.{i}.0.{k - 1}.conv",
    r"likelihood/preups_N/zN_post": lambda l, i, k: f"head.decoder.rise.{i}.{k + 1}.0.conv",
    r"likelihood/post_zN_ups_c": lambda l, i: f"head.decoder.below.{i - 1}.0.conv",
    r"likelihood/post_c_N_N": lambda l, i, k: f"head.decoder.joined.{i}.{k - 1}.conv",
    r"likelihood/y_lvlN": lambda l, i: f"head.decoder.logits.{i}",
}
NORM = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}


def our_name(theirs):
    """likelihood/decoder/conv_0_1/batch_norm/gamma -> backbone.up.2.0.norm.weight, of 4 levels."""
    layer, last = theirs.replace("/batch_norm", "").rsplit("/", 1)
    for pattern, place in PLACES.items():
        if match := re.fullmatch(pattern.replace("N", r"(\d+)"), layer):
            parts = [int(part) if part.isdigit() else part for part in match.groups()]
            place = place(network.levels, *parts)
            if network.is_latent and "recomb" in layer:  # The latent variables come before these layers.
                place = place.replace("backbone", "head")
            if place and last in NORM:
                return f"{place.removesuffix('.conv')}.norm.{NORM[last]}"
            return place and f"{place}.{'weight' if last == 'W' else 'bias'}"
    raise ValueError(theirs)


def as_ours(theirs, tensor):
    """A variable, or its gradient, by our name and in our shape: kernels [o, i, 1, h, w]."""
    name, tensor = our_name(theirs), tensor.detach().clone()
    if theirs.endswith("/W"):
        if ".mean." in name and tensor.shape[0] == 3:  # On a grid of one voxel the middle alone counts.
            tensor = tensor[1:2, 1:2]
        tensor = tensor.permute(3, 2, 0, 1).unsqueeze(2)
    if name.startswith("head.factor"):  # channel class·r + rank -> rank·c + class
        tensor = tensor.unflatten(0, (network.classes, -1)).transpose(0, 1).flatten(0, 1)
    return name, tensor.contiguous()


def forward(code, image, classes, rank, levels, n0):
    """[b, h, w, channels] -> mean and diagonal [b, c, v], factor [b, r, c, v]."""
    b, h, w, _ = image.shape
    sizes = dict(rank=rank, n0=n0, resolution_levels=levels)
    _, distribution = code[0].proposed(None, None, (h, w, 1), classes, norm=batch_norm, x=image, **sizes)
    mean, diagonal, factor = distribution.parts
    mean, diagonal = [part.reshape(b, h * w, classes).transpose(1, 2) for part in (mean, diagonal)]
    return mean, diagonal, factor.reshape(b, h * w, classes, rank).permute(0, 3, 2, 1)


def write(path, tensors):
    """A safetensors file, with the number of trained parameters."""
    used = [(name, v) for name, v in network.all.items() if v.requires_grad and our_name(name)]
    count = sum(as_ours(*variable)[1].numel() for variable in used)
    kinds = {torch.float64: "F64", torch.float32: "F32", torch.int32: "I32"}
    header, start = {}, 0
    data = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    data["parameters"] = torch.tensor([count], dtype=torch.int32)
    for name, tensor in data.items():
        end = start + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join(bytes(tensor.flatten().view(torch.uint8).tolist()) for tensor in data.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    print(f"{path.name}: {path.stat().st_size} bytes, {count} parameters")


def small(code, path):
    """Four levels of 2, 4, 8 and 12 channels with seeded weights: everything is stored."""
    global network
    b, channels, h, w, classes, rank, levels, n0, m = 2, 2, 8, 24, 3, 2, 4, 2, 3
    generator = torch.Generator().manual_seed(0)

    def single(*shape):  # Numbers that single precision holds exactly.
        return torch.randn(shape, generator=generator).float().double()

    def make(name, shape):
        if name.endswith("W"):
            return (single(*shape) * (2 / math.prod(shape[:3])) ** 0.5).float().double()
        return (single(*shape) * 0.2 + name.endswith("gamma")).float().double()

    network = Variables(make, levels, classes)
    sizes = (classes, rank, levels, n0)
    # The moving averages are the statistics of another batch: with random ones the last rectifiers give 0 alone.
    network.training, network.decay = True, 0.0
    with torch.no_grad():
        forward(code, single(b, h, w, channels), *sizes)
        for name, variable in network.all.items():
            if "moving" in name:
                variable.copy_(variable.float())
    network.training, network.decay = False, 0.99

    image = single(b, h, w, channels)
    outputs = dict(zip(("mean", "diagonal", "factor"), forward(code, image, *sizes)))
    tensors = {f"eval.{name}": part for name, part in outputs.items()}
    tensors |= {f"weight.{name}": tensor.float() for name, tensor in (as_ours(n, v) for n, v in network.all.items())}
    tensors["image"] = image.permute(0, 3, 1, 2).unsqueeze(2).float()

    network.training = True
    mean, diagonal, factor = forward(code, image, *sizes)
    tensors |= {"train.mean": mean, "train.diagonal": diagonal, "train.factor": factor}
    # The paper's loss with m independent samples.
    rank_noise, noise = single(m, b, rank), single(m, b, classes, h * w)
    target = torch.randint(classes, (b, h * w), generator=generator)
    samples = mean + torch.einsum("brcv,mbr->mbcv", factor, rank_noise) + diagonal.sqrt() * noise
    index = target.expand(m, b, h * w).unsqueeze(2)
    log_p = samples.log_softmax(2).gather(2, index).sum((2, 3))
    loss = (math.log(m) - log_p.logsumexp(0)).mean()
    loss.backward()
    tensors |= {"train.rank_noise": rank_noise.float(), "train.noise": noise.float(), "train.target": target.int()}
    tensors["train.loss"] = loss.reshape(1)
    stored = ("down.0.0.conv.weight", "down.3.1.norm.weight", "up.2.0.conv.weight", "up.0.2.norm.bias")
    stored += ("pointwise.0.conv.weight", "head.factor.weight")
    norms = {}
    for theirs, variable in network.all.items():
        if variable.requires_grad:
            name, gradient = as_ours(theirs, variable.grad)
            norms[name] = gradient.norm()
            if name.endswith(stored):
                tensors[f"train.grad.{name}"] = gradient
        else:
            name, statistic = as_ours(theirs, variable)
            tensors[f"train.statistic.{name}"] = statistic
    tensors["train.grad_norms"] = torch.stack([norms[name] for name in sorted(norms)])
    write(path, tensors)


def formula(name, shape):
    """The weights of the network at its full size, by our names and shapes; written a second time in tests/it/unet_parity.rs."""
    k = torch.arange(math.prod(shape), dtype=torch.int64)
    n = sum((i + 1) * byte for i, byte in enumerate(name.encode()))
    number = ((3 * k * k + 7919 * k + 104729 * n) % 2003).double() / 1001 - 1  # -1 to 1
    if ".deviation." in name:
        number = number * 0.1
    elif len(shape) == 5:
        number = number * math.sqrt(6 / math.prod(shape[1:]))
    elif name.endswith(("norm.weight", "running_var")):
        number = number * 0.5 + 1
    else:
        number = number * 0.2 + 0.5 * name.endswith("norm.bias")
    return number.reshape(shape)


def their_formula(name, shape):
    """A variable with the values of `formula`."""
    ours = our_name(name)
    if not ours:
        return torch.zeros(shape)
    if not name.endswith("/W"):
        return formula(ours, shape)
    kh, kw, i, o = shape
    if ".mean." in ours and kh == 3:
        middle = formula(ours, (o, i, 1, 1, 1)).reshape(o, i).T
        return F.pad(middle.reshape(i * o, 1, 1), (1, 1, 1, 1)).reshape(i, o, 3, 3).permute(2, 3, 0, 1).contiguous()
    return formula(ours, (o, i, 1, kh, kw)).squeeze(2).permute(2, 3, 1, 0).contiguous()


def latent(code, path, name, latent_levels, latent):
    """A network with latent variables: four levels of 2, 4, 8 and 12 channels with weights by the formula, images of 8 x 8."""
    global network
    likelihoods, priors, posteriors = code
    b, size, classes, levels, n0 = 6, 8, 2, 4, 2
    generator = torch.Generator().manual_seed(1)
    random = lambda *shape: torch.randn(shape, generator=generator).float().double()
    network = Variables(their_formula, levels, classes, is_latent=True)
    # The noise of all latent maps of an image side by side, the finest first, channels before space.
    sides = [1] if latent_levels == 1 else [size >> (levels - latent_levels + i) for i in range(latent_levels)]
    noise = random(b, sum(latent * side * side for side in sides))
    start = 0
    for side in sides:
        part = noise[:, start : start + latent * side * side].reshape(b, latent, side, side)
        start += latent * side * side
        shape = (b, latent) if latent_levels == 1 else (b, side, side, latent)
        network.noise[shape] = part.permute(0, 2, 3, 1).reshape(shape)
    sizes = dict(n0=n0, resolution_levels=levels, latent_levels=latent_levels, norm=batch_norm)
    posterior, prior, likelihood = [getattr(part, name) for part in (posteriors, priors, likelihoods)]

    def run(image, target, generation):
        with contextlib.redirect_stdout(None):
            z, *q = posterior(image, F.one_hot(target, classes).double(), latent, None, **sizes)
            z_p, *p = prior(z, image, latent, classes, generation, None, **sizes)
            maps = likelihood(z_p if generation else z, None, (size, size, 1), classes, x=image, **sizes)
        # Sums of logits from the coarsest level on, and the divergence of each image.
        sums = torch.stack(maps[::-1]).cumsum(0).flatten(2, 3).transpose(2, 3)
        normal = lambda mean, deviation: torch.distributions.Normal(mean.flatten(1), deviation.flatten(1))
        kl = 0
        for i, (q_mean, q_deviation, p_mean, p_deviation) in enumerate(zip(*q, *p)):
            between = torch.distributions.kl_divergence(normal(q_mean, q_deviation), normal(p_mean, p_deviation))
            kl = kl + 4**i * between.sum(1)
        return sums, kl

    batch = lambda: (random(b, size, size, 1), torch.randint(classes, (b, size, size), generator=generator))
    network.training, network.decay = True, 0.0
    with torch.no_grad():
        run(*batch(), False)
        for variable in network.all.values():
            if not variable.requires_grad:
                variable.copy_(variable.float())
    image, target = batch()
    tensors = {"image": image.permute(0, 3, 1, 2).unsqueeze(2).float(), "noise": noise.float(), "target": target.flatten(1).int()}
    for theirs, variable in network.all.items():
        if not variable.requires_grad and our_name(theirs):
            tensors[f"statistic.{our_name(theirs)}"] = variable.float()
    network.training = False
    with torch.no_grad():
        tensors["eval.logits"] = run(image, target, True)[0][-1]
    network.training, network.decay = True, 0.99
    sums, kl = run(image, target, False)
    picked = sums.log_softmax(2).gather(2, target.flatten(1).expand(len(sums), b, -1).unsqueeze(2))
    loss = (kl - picked.sum((0, 2, 3))).mean()
    loss.backward()
    tensors |= {"train.logits": sums, "train.kl": kl, "train.loss": loss.reshape(1)}
    norms = {}
    for theirs, variable in network.all.items():
        if variable.requires_grad and our_name(theirs):
            ours, gradient = as_ours(theirs, variable.grad)
            norms[ours] = gradient.norm()
    tensors["train.grad_norms"] = torch.stack([norms[ours] for ours in sorted(norms)])
    write(path, tensors)


def lidc(code, path):
    """The network of the paper with weights by a formula, in evaluation: a few voxels of the output are stored."""
    global network
    h, w, classes, rank, levels, n0, step = 128, 128, 2, 10, 7, 32, 16

    def make(name, shape):
        tensor = their_formula(name, shape)
        if "factor" in name:  # rank·c + class -> class·r + rank
            tensor = tensor.unflatten(-1, (rank, classes)).transpose(-1, -2).flatten(-2)
        return tensor.contiguous()

    network = Variables(make, levels, classes)
    y, x = torch.arange(h).double().view(-1, 1), torch.arange(w).double()
    image = (0.07 * y + 0.05 * x).sin() * (0.013 * y - 0.017 * x).cos() / 2
    with torch.no_grad():
        outputs = forward(code, image.view(1, h, w, 1), classes, rank, levels, n0)
    some = [part.unflatten(-1, (h, w))[..., 5::step, 5::step] for part in outputs]
    tensors = dict(zip(("eval.mean", "eval.diagonal", "eval.factor"), some))
    write(path, tensors)


checkout, folder = map(pathlib.Path, sys.argv[1:])
code = authors_code(checkout)
small(code, folder / "unet_small.safetensors")
lidc(code, folder / "unet_lidc.safetensors")
latent(code, folder / "prob_unet.safetensors", "prob_unet2D", 1, 6)
latent(code, folder / "phiseg.safetensors", "phiseg", 3, 2)
