"""How much memory weights and KV cache take, and how much a GPU leaves for the KV cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scripts.lib.checkpoints.manifest import Scheme, Shape
from scripts.lib.plan.facts import Facts
from scripts.lib.plan.flags import Settings
from scripts.lib.plan.gpus import GIB, MIB, Device
from scripts.lib.plan.shapes import Counts, known
from scripts.lib.plan.tables import in_range, parse_version, reference

CPU_KV_SPACE = "VLLM_CPU_KVCACHE_SPACE"
MEMORY_NOT_KNOWN = "the size of the memory is not known"
HALF = 2
BLOCK = 16
CPU_BLOCK = 128
FP8_KV = ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "int8")
HYBRIDS = ("mamba", "jamba", "bamba", "qwen3_next", "falcon_h1", "granitemoehybrid", "nemotron_h")


@dataclass(frozen=True)
class Weights:
    """Bytes of a checkpoint's weights."""

    ideal: int | None
    """Each layer's parameters x bits / 8, without scales."""
    real: int
    embedding: int | None
    """Of the input embedding, of which a step reads single rows; 0 where it is the output too.
    None: not known."""
    how: str


def weights_of(facts: Facts) -> Weights | None:
    """Return the bytes of the weights: from the tensors' headers, else counted from the shape."""
    counts, scheme, shape = facts.counts, facts.scheme, facts.shape
    embedding = _embedding_bytes(shape, counts)
    if facts.tensors is not None:
        how = "sum of the checkpoint's tensors"
        return Weights(facts.tensors.ideal_bytes, facts.tensors.total_bytes, embedding, how)
    if counts is None or scheme is None or shape is None:
        return None
    bits = scheme.weight_bits
    if scheme.scheme == "unknown" or scheme.groups or bits is None:
        return None
    rest = (counts.total - counts.linear) * (4 if scheme.scheme == "fp32" else HALF)
    packed = counts.linear * bits // 8
    how = f"{counts.total:,} parameters counted from the shape"
    if scheme.method is None:
        return Weights(packed + rest, packed + rest, embedding, how)
    scales = _scale_bytes(counts, scheme)
    if scales is None:
        return None
    how += f", the {counts.linear:,} of the linear layers at {bits} bits and their scales"
    return Weights(packed + rest, packed + rest + scales, embedding, how)


def _embedding_bytes(shape: Shape | None, counts: Counts | None) -> int | None:
    if counts is not None:
        return counts.embedding * HALF if counts.head else 0
    if shape is None or shape.tie_word_embeddings is None:
        return None
    if shape.tie_word_embeddings:
        return 0
    if shape.vocab_size is None or shape.hidden_size is None:
        return None
    return shape.vocab_size * shape.hidden_size * HALF


def _scale_bytes(counts: Counts, scheme: Scheme) -> int | None:
    """Return the bytes of scales and zero points, as the methods' libraries store them.

    None: the scheme does not say how many there are.
    """
    if scheme.scheme.endswith("nvfp4"):
        return counts.linear // 16
    if scheme.scheme.endswith("mxfp4"):
        return counts.linear // 32
    if scheme.block_shape:
        return counts.linear // (scheme.block_shape[0] * scheme.block_shape[1]) * 4
    if scheme.strategy in ("group", None) and scheme.group_size and scheme.weight_bits:
        groups = counts.linear // scheme.group_size
        has_zeros = scheme.method == "gptq" or scheme.symmetric is False
        return groups * HALF + (groups * scheme.weight_bits // 8 if has_zeros else 0)
    if scheme.strategy == "channel":
        return counts.columns * HALF
    return 0 if scheme.strategy == "tensor" else None  # one number a layer: some hundred bytes


def loaded_bytes(weights: Weights, shape: Shape | None, settings: Settings, length: int) -> int:
    """Return the bytes on one GPU after loading: its share, and the table of rotary positions.

    Where the table's size is not known (:func:`rotary_bytes`) it is the share alone.
    """
    share = weights.real / settings.tensor_parallel / settings.pipeline_parallel
    return round(share) + (rotary_bytes(shape, length) or 0)


def rotary_bytes(shape: Shape | None, length: int | None) -> int | None:
    """Return the bytes of the table of rotary positions; None: not known."""
    return length * shape.head_dim * HALF if shape and shape.head_dim and length else None


@dataclass(frozen=True)
class Kv:
    """The KV cache of one token on one GPU, or why there is no estimate."""

    bytes_per_token: float | None
    how: str


def kv_of(shape: Shape | None, scheme: Scheme | None, settings: Settings) -> Kv:
    """Return the bytes of one token's KV cache on one GPU: 2 x layers x KV heads x head size.

    A KV head is repeated where there are fewer of them than GPUs. Latent attention (MLA) and
    hybrid models share and page their caches in ways for which there is no rule here.
    """
    if shape is None:
        return Kv(None, "the shape of the model is not known")
    fault = _why_no_kv(shape, settings)
    if fault:
        return Kv(None, fault)
    depth, kv_heads, head_dim = known(shape, "layers", "kv_heads", "head_dim")
    size, name = _kv_item(shape, scheme, settings)
    layers = -(-depth // settings.pipeline_parallel)
    heads = max(1, kv_heads // settings.tensor_parallel)
    total = 2 * layers * heads * head_dim * size
    how = f"2 x {layers} layers x {heads} KV heads x {head_dim} x {size} bytes ({name})"
    return Kv(float(total), how)


def _why_no_kv(shape: Shape, settings: Settings) -> str | None:
    if shape.kv_lora_rank:
        return "latent attention (MLA) stores its cache in a form of its own, no rule here"
    if shape.model_type in HYBRIDS:
        return "a hybrid of attention and state-space layers pages its cache in a way of its own"
    if shape.sliding_window:
        return "layers with a sliding window keep fewer tokens, so tokens do not add up simply"
    if not (shape.layers and shape.kv_heads and shape.head_dim and shape.attention_heads):
        return "config.json does not say the number of layers, KV heads or the head size"
    return split_fault(shape, settings.tensor_parallel)


def split_fault(shape: Shape, tp: int) -> str | None:
    """Return why the attention heads cannot be split over so many GPUs; None: they can."""
    heads, kv_heads = shape.attention_heads, shape.kv_heads
    if tp == 1 or not heads or not kv_heads:
        return None
    if heads % tp:
        return f"tensor parallel size {tp} does not divide the {heads} attention heads"
    if kv_heads >= tp and kv_heads % tp:
        return f"tensor parallel size {tp} does not divide the {kv_heads} KV heads"
    if kv_heads < tp and tp % kv_heads:
        return f"the {kv_heads} KV heads cannot be repeated evenly over {tp} GPUs"
    return None


def _kv_item(shape: Shape, scheme: Scheme | None, settings: Settings) -> tuple[int, str]:
    named = settings.kv_cache_dtype
    if named is None and scheme and scheme.kv_cache_scheme and "8" in scheme.kv_cache_scheme:
        return 1, f"{scheme.kv_cache_scheme}, as the checkpoint says"
    if named and named.startswith(FP8_KV):
        return 1, named
    dtype = named or settings.dtype or shape.dtype or "16-bit"
    wide = (named or settings.dtype) in ("float32", "float")
    return (4 if wide else HALF), "bfloat16" if dtype == "float32" and not wide else dtype


@dataclass(frozen=True)
class Room:
    """What a device leaves for the KV cache, per GPU."""

    bytes: int
    overhead: int
    """Taken by what is neither weights nor KV cache."""
    how: str
    claims: int | None = None
    """Memory that must be free for the whole engine when it starts, or it refuses to; None: it
    needs no more than its parts."""


def gpu_room(
    device: Device, loaded: int, shape: Shape, settings: Settings, version: str | None
) -> Room | str:
    """Return what one GPU leaves for the KV cache, or what of it is not known.

    Budget (memory x utilization) less weights, activations at their peak, libraries and, where
    the version counts them, CUDA graphs. Constants and their sources: engine_memory.yaml.
    """
    if device.memory_bytes is None:
        return MEMORY_NOT_KNOWN
    given = settings.number("gpu-memory-utilization")
    share = given or engine_constant("gpu_memory_utilization", version)
    budget = int(device.memory_bytes * share)
    batch = _batch(device.memory_bytes, device.name, settings, version, shape)
    if isinstance(batch, str):
        return batch
    tokens, sequences = batch
    peak = peak_bytes(shape, tokens, sequences, settings.tensor_parallel, version)
    graphs = _graph_bytes(shape, sequences, settings, version)
    if isinstance(peak, str) or isinstance(graphs, str):
        return peak if isinstance(peak, str) else str(graphs)
    fixed = engine_constant("context_gib", version) + engine_constant("libraries_gib", version)
    overhead = peak + int(fixed * GIB) + graphs
    how = (
        f"{device.memory_bytes / GIB:.2f} GiB ({device.memory_how}) x utilization {share:g}"
        f"{'' if given else ' (the default)'} - weights {loaded / GIB:.2f} - assumed: activations "
        f"{peak / GIB:.2f} ({tokens} batched tokens, {sequences} sequences), CUDA context and "
        f"libraries {fixed:.2f}, CUDA graphs {graphs / GIB:.2f} GiB"
    )
    return Room(budget - loaded - overhead, overhead, how)


def engine_constant(key: str, version: str | None) -> float:
    """Return a constant of ``engine_memory.yaml`` for an engine version (None: the latest)."""
    parsed = parse_version(version)
    rows: list[dict[str, Any]] = reference("engine_memory")
    return float(next(r["value"] for r in rows if r["key"] == key and in_range(parsed, r)))


def peak_bytes(
    shape: Shape, tokens: int, sequences: int, tp: int, version: str | None
) -> int | str:
    """Return the activations' peak while the engine profiles itself, or why it is not known.

    The larger of the MLP of one layer over all batched tokens (its gate-up output and product,
    and three hidden states: residual, input and its norm) and the sampler over all sequences;
    the two follow one another (vllm/v1/worker/gpu_model_runner.py, profile_run). A log of an 8B
    model with 29,000 batched tokens prints 2.99 GiB for the former, as this counts.
    """
    inner = shape.intermediate_size
    if shape.experts and shape.moe_intermediate_size:
        chosen = shape.experts_per_token
        inner = None if chosen is None else shape.moe_intermediate_size * chosen
    hidden, vocab = shape.hidden_size, shape.vocab_size
    if inner is None or hidden is None or vocab is None:
        return "config.json does not say the sizes that the activations' peak follows from"
    forward = tokens * (3 * inner // tp + 3 * hidden) * HALF
    sampler = sequences * vocab * engine_constant("sampler_bytes", version)
    return int(max(forward, sampler))


def _batch(
    memory_bytes: int, name: str, settings: Settings, version: str | None, shape: Shape
) -> tuple[int, int] | str:
    """Return max_num_batched_tokens and max_num_seqs: as given, or the server's defaults.

    vllm/engine/arg_utils.py: by memory since 0.8; before, one prompt of full length.
    """
    memory, parsed = memory_bytes / GIB, parse_version(version)
    given = settings.whole("max-num-batched-tokens"), settings.whole("max-num-seqs")
    if parsed is not None and parsed.release < (0, 8):
        length = max_length(settings, shape)
        if length is None and given[0] is None:
            return "the longest request is not known, nor with it how many tokens are batched"
        tokens, sequences = (2048 if (length or 0) > 32768 else max(2048, length or 0)), 256
    elif memory >= 160 and (parsed is None or parsed.release >= (0, 32)):
        tokens, sequences = 16384, 1024
    elif memory >= 70 and "A100" not in name.upper():
        tokens, sequences = 8192, 1024
    else:
        tokens, sequences = 2048, 256
    return given[0] or tokens, given[1] or sequences


def _graph_bytes(
    shape: Shape, sequences: int, settings: Settings, version: str | None
) -> int | str:
    """Return the memory of captured graphs: sizes 1, 2, 4, then every 8th to 256, 16th to 512."""
    if settings.eager or not engine_constant("graphs_counted", version):
        return 0
    if shape.layers is None:
        return "config.json does not say the number of layers, and with it the size of the graphs"
    largest = min(2 * sequences, 512)
    sizes = 3 + min(largest, 256) // 8 + max(0, largest - 256) // 16
    each = engine_constant("graph_mib", version) * MIB
    return int(2 * sizes * shape.layers * each)


def max_length(settings: Settings, shape: Shape | None) -> int | None:
    """Return the longest request that is served: as given, or the model's own."""
    return settings.whole("max-model-len") or (shape.max_position_embeddings if shape else None)


def given_room(settings: Settings) -> Room | None:
    """Return the room that ``--kv-cache-memory-bytes`` gives; None: it is not set."""
    size = settings.whole("kv-cache-memory-bytes")
    return Room(size, 0, f"--kv-cache-memory-bytes {size}") if size else None


def cpu_room(device: Device, loaded: int, settings: Settings, version: str | None) -> Room | str:
    """Return what the CPU backend keeps for the KV cache, or what of it is not known.

    VLLM_CPU_KVCACHE_SPACE (GiB) where it is set, or --kv-cache-memory-bytes, else the version's
    default: a fixed size, half of a NUMA node's memory, or, since 0.21, what the engine's own
    process leaves of the utilization's share of it, which must all be free at the start.
    """
    space = settings.environment.get(CPU_KV_SPACE, "").strip()
    if space.isdigit() and int(space):
        return Room(int(space) * GIB, 0, f"{CPU_KV_SPACE}={space} GiB")
    if given := given_room(settings):
        return given
    fixed = engine_constant("cpu_kv_gib", version)
    if fixed:
        how = f"{fixed:g} GiB, this version's default without {CPU_KV_SPACE}"
        return Room(int(fixed * GIB), 0, how)
    if device.memory_bytes is None:
        return MEMORY_NOT_KNOWN
    memory = device.memory_bytes
    share = engine_constant("cpu_kv_share", version)
    if share:
        how = f"{share:g} of {memory / GIB:.1f} GiB of memory (assumed: one NUMA node)"
        return Room(int(memory * share), 0, how)
    set_share = settings.number("gpu-memory-utilization")
    share = set_share or engine_constant("gpu_memory_utilization", version)
    how = (
        f"{memory / GIB:.1f} GiB of memory (assumed: one NUMA node) x utilization {share:g}"
        f"{'' if set_share else ' (the default)'} - weights {loaded / GIB:.2f} GiB; what else the "
        "process holds is not known beforehand"
    )
    claims = int(memory * share)
    return Room(claims - loaded, 0, how, claims)


def kv_tokens(room: Room, bytes_per_token: float, block: int) -> int:
    """Return how many tokens fit, in whole blocks."""
    return max(0, int(room.bytes // (bytes_per_token * block))) * block
