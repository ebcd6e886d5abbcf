"""Makes optim.json: 50 steps of PyTorch's optimizers, clipping and learning-rate schedules, to compare with.

optim.py FOLDER writes FOLDER/optim.json. Needs torch 2.11. Everything is computed from formulas, without a random
generator; `problem` is written a second time in tests/it/optim.rs.
"""
import json, pathlib, sys, warnings
import torch
from torch.optim import lr_scheduler as lrs

warnings.simplefilter("ignore")  # SequentialLR steps its parts in a way that it warns about itself
torch.set_num_threads(1)
STEPS, EVERY = 50, 10

def series(n, scale, shift, kind):
    return torch.sin(torch.arange(n, dtype=torch.float64) * scale + shift).to(kind)

def problem(kind):
    start = {"w": series(12, 0.7, 0.3, kind).reshape(3, 4), "v": series(4, 1.3, 1.0, kind), "u": series(2, 2.1, 0.4, kind)}
    return {name: tensor.requires_grad_() for name, tensor in start.items()}

def loss(p, step, kind):
    """A small network on six points with a double well beside it, which every third step leaves out."""
    x, y = series(18, 0.9, 0.1, kind).reshape(6, 3), series(6, 1.7, 0.6, kind)
    out = torch.tanh(x @ p["w"]) @ p["v"]
    value = ((out - y) ** 2).mean() + 0.1 * torch.cos(3 * p["w"]).sum()
    if step % 3 != 0:
        value = value + 0.25 * ((p["u"] ** 2 - 1) ** 2).sum() + 0.3 * p["u"][0] * out.mean()
    return value

METHODS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop}

def optimizer(method, parameters, rate):
    (name, settings), = method.items()
    settings = dict(settings)
    if "beta1" in settings or "beta2" in settings:
        settings["betas"] = (settings.pop("beta1", 0.9), settings.pop("beta2", 0.999))
    return METHODS[name](parameters, lr=rate, foreach=False, **settings)

def scheduler(opt, schedule, warmup):
    warm = warmup.get("steps", 0)
    left = STEPS - warm
    name, settings = next(iter(schedule.items())) if isinstance(schedule, dict) else (schedule, {})
    if name == "constant":
        main = lrs.ConstantLR(opt, factor=1.0)
    elif name == "multi_step":
        main = lrs.MultiStepLR(opt, [m - warm for m in settings["milestones"]], settings.get("gamma", 0.1))
    elif name == "polynomial" and settings.get("end", 0.0) == 0.0:
        main = lrs.PolynomialLR(opt, left, settings.get("power", 1.0))
    elif name == "polynomial":  # PyTorch has no end other than 0: a polynomial of the difference, plus the end
        base = opt.param_groups[0]["lr"]
        share, power = settings["end"] / base, settings.get("power", 1.0)
        main = lrs.LambdaLR(opt, lambda s: share + (1 - share) * (1 - s / left) ** power)
    elif name == "cosine":
        main = lrs.CosineAnnealingLR(opt, left, settings.get("end", 0.0))
    if warm == 0:
        return main
    rise = lrs.LinearLR(opt, start_factor=warmup.get("start", 1 / 3), total_iters=warm)
    return lrs.SequentialLR(opt, [rise, main], milestones=[warm])

def run(case, kind, every):
    p = problem(kind)
    opt = optimizer(case["method"], list(p.values()), case["rate"])
    plan = scheduler(opt, case["schedule"], case["warmup"])
    checkpoints = []
    for step in range(STEPS):
        opt.zero_grad()
        value = loss(p, step, kind)
        value.backward()
        norm = None
        if case["clip"] is not None:
            norm = torch.nn.utils.clip_grad_norm_(list(p.values()), case["clip"], foreach=False).item()
        opt.step()
        plan.step()
        if (step + 1) % every == 0:
            values = {name: tensor.detach().flatten().tolist() for name, tensor in p.items()}
            checkpoints.append({"steps": step + 1, "loss": value.item(), "norm": norm, "values": values})
    return checkpoints

def rates(case):
    opt = torch.optim.SGD([torch.zeros(1)], lr=case["rate"])
    plan, out = scheduler(opt, case["schedule"], case["warmup"]), []
    for _ in range(STEPS):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        plan.step()
    return out

def case(name, method, rate, clip=None, schedule="constant", warmup={}):
    return {"name": name, "method": method, "rate": rate, "clip": clip, "schedule": schedule, "warmup": warmup}

RUNS = [
    case("adam", {"adam": {}}, 0.02),
    case("adam, decay", {"adam": {"beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": 0.1}}, 0.02),
    case("adamw", {"adamw": {}}, 0.02),
    case("adamw, settings", {"adamw": {"beta1": 0.7, "beta2": 0.99, "eps": 1e-5, "weight_decay": 0.5}}, 0.02),
    case("sgd", {"sgd": {}}, 0.05),
    case("sgd, momentum", {"sgd": {"momentum": 0.9}}, 0.01),
    case("sgd, dampening, decay", {"sgd": {"momentum": 0.8, "dampening": 0.3, "weight_decay": 0.05}}, 0.02),
    case("sgd, nesterov, decay", {"sgd": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}}, 0.01),
    case("rmsprop", {"rmsprop": {}}, 0.01),
    case("rmsprop, momentum, decay", {"rmsprop": {"alpha": 0.9, "momentum": 0.6, "eps": 1e-4, "weight_decay": 0.02}}, 0.005),
    case("rmsprop, centered", {"rmsprop": {"centered": True}}, 0.005),
    case("rmsprop, centered, momentum", {"rmsprop": {"alpha": 0.95, "momentum": 0.5, "eps": 1e-3, "centered": True}}, 0.005),
    case("adam, clipped", {"adam": {}}, 0.02, clip=0.5),
    case("sgd, clipped, cosine, warm-up", {"sgd": {"momentum": 0.9}}, 0.05, 0.7, {"cosine": {"end": 0.001}}, {"steps": 8, "start": 0.1}),
]

SCHEDULES = [
    ("constant", {}),
    ("constant", {"steps": 7, "start": 0.01}),
    ({"multi_step": {"milestones": [10, 25, 26]}}, {}),
    ({"multi_step": {"milestones": [12, 30, 80], "gamma": 0.5}}, {"steps": 5}),
    ({"polynomial": {}}, {}),
    ({"polynomial": {"power": 0.9}}, {}),
    ({"polynomial": {"power": 2.5}}, {"steps": 10, "start": 0.2}),
    ({"polynomial": {"power": 0.9, "end": 0.001}}, {"steps": 4, "start": 1.0}),
    ({"cosine": {}}, {}),
    ({"cosine": {"end": 0.002}}, {}),
    ({"cosine": {"end": 0.002}}, {"steps": 1, "start": 0.5}),
    ({"cosine": {}}, {"steps": 49}),
]

runs = [c | {"f64": run(c, torch.float64, EVERY), "f32": run(c, torch.float32, STEPS)} for c in RUNS]
schedules = [case("", None, 0.03, schedule=s, warmup=w) for s, w in SCHEDULES]
schedules = [{k: c[k] for k in ("rate", "schedule", "warmup")} | {"rates": rates(c)} for c in schedules]

def lines(items):
    return "[\n" + ",\n".join(json.dumps(item) for item in items) + "\n]"

text = f'{{"torch": "{torch.__version__.split("+")[0]}", "runs": {lines(runs)}, "schedules": {lines(schedules)}}}\n'
(pathlib.Path(sys.argv[1]) / "optim.json").write_text(text)
