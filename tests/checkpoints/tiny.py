"""A model of two small layers, and what its tensors look like in each storage format."""

HIDDEN, INNER, HEADS, KV_HEADS, HEAD, LAYERS, VOCAB = 256, 512, 4, 2, 64, 2, 1000
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "num_hidden_layers": LAYERS,
    "vocab_size": VOCAB,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
LINEAR = {
    "self_attn.q_proj": (HEADS * HEAD, HIDDEN),
    "self_attn.k_proj": (KV_HEADS * HEAD, HIDDEN),
    "self_attn.v_proj": (KV_HEADS * HEAD, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HEADS * HEAD),
    "mlp.gate_proj": (INNER, HIDDEN),
    "mlp.up_proj": (INNER, HIDDEN),
    "mlp.down_proj": (HIDDEN, INNER),
}
LINEAR_PARAMETERS = LAYERS * sum(rows * columns for rows, columns in LINEAR.values())
OTHER_PARAMETERS = 2 * VOCAB * HIDDEN + HIDDEN + LAYERS * 2 * HIDDEN
PARAMETERS = LINEAR_PARAMETERS + OTHER_PARAMETERS


def plain(dtype="BF16"):
    """All tensors of the model, unquantized."""
    tensors = {
        "model.embed_tokens.weight": (dtype, [VOCAB, HIDDEN]),
        "lm_head.weight": (dtype, [VOCAB, HIDDEN]),
        "model.norm.weight": (dtype, [HIDDEN]),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{prefix}.{norm}.weight"] = (dtype, [HIDDEN])
        for name, (rows, columns) in LINEAR.items():
            tensors[f"{prefix}.{name}.weight"] = (dtype, [rows, columns])
    return tensors


def quantized(parts_of, dtype="BF16", only=lambda name: True):
    """The model with each linear layer stored as ``parts_of(rows, columns)``."""
    tensors = plain(dtype)
    for layer in range(LAYERS):
        for name, (rows, columns) in LINEAR.items():
            module = f"model.layers.{layer}.{name}"
            if only(module):
                del tensors[f"{module}.weight"]
                for suffix, part in parts_of(rows, columns).items():
                    tensors[f"{module}.{suffix}"] = part
    return tensors


def gptq_parts(rows, columns, bits=4, group=128):
    return {
        "qweight": ("I32", [columns * bits // 32, rows]),
        "qzeros": ("I32", [columns // group, rows * bits // 32]),
        "scales": ("F16", [columns // group, rows]),
        "g_idx": ("I32", [columns]),
    }


def awq_parts(rows, columns, group=128):
    return {
        "qweight": ("I32", [columns, rows // 8]),
        "qzeros": ("I32", [columns // group, rows // 8]),
        "scales": ("F16", [columns // group, rows]),
    }


def packed_parts(rows, columns, bits=4, group=128):
    return {
        "weight_packed": ("I32", [rows, columns * bits // 32]),
        "weight_scale": ("BF16", [rows, columns // group]),
        "weight_shape": ("I64", [2]),
    }


def eight_bit_parts(rows, columns, dtype="F8_E4M3"):
    return {"weight": (dtype, [rows, columns]), "weight_scale": ("BF16", [rows, 1])}


def block_parts(rows, columns):
    shape = [-(-rows // 128), -(-columns // 128)]
    return {"weight": ("F8_E4M3", [rows, columns]), "weight_scale_inv": ("F32", shape)}


def nvfp4_parts(rows, columns):
    return {
        "weight_packed": ("U8", [rows, columns // 2]),
        "weight_scale": ("F8_E4M3", [rows, columns // 16]),
        "weight_global_scale": ("F32", [1]),
        "input_global_scale": ("F32", [1]),
    }


def modelopt_nvfp4_parts(rows, columns):
    return {
        "weight": ("U8", [rows, columns // 2]),
        "weight_scale": ("F8_E4M3", [rows, columns // 16]),
        "weight_scale_2": ("F32", []),
        "input_scale": ("F32", []),
    }


def nf4_parts(rows, columns):
    return {
        "weight": ("U8", [rows * columns // 2, 1]),
        "weight.absmax": ("U8", [rows * columns // 64]),
        "weight.quant_map": ("F32", [16]),
        "weight.nested_absmax": ("F32", [rows * columns // 64 // 256]),
        "weight.nested_quant_map": ("F32", [256]),
        "weight.quant_state.bitsandbytes__nf4": ("U8", [100]),
    }


def aqlm_parts(rows, columns):
    return {
        "codes": ("I16", [rows, columns // 8, 1]),
        "codebooks": ("F16", [1, 65536, 1, 8]),
        "scales": ("F16", [rows, 1, 1, 1]),
    }
