"""What training, exports and downloads leave behind that is no checkpoint yet, and what turns it into one: a table.

The first row that a folder's files match says what it is. ``what_it_is`` looks the folder up.
"""

from __future__ import annotations

from dataclasses import dataclass

# Where converted weights go, in all lines.
OUT = (
    "OUT is a copy of the folder that training began with (config.json, tokenizer, modules.json and its folders), "
    "without its weights"
)
CHECK, CHECK_PICKLE = f"({OUT}), then: embaudit check OUT", f"({OUT}), then: embaudit check OUT --allow-pickle"
EXPORTED = "Use the folder that it was exported from."
BEFORE_5 = "pip install 'transformers<5' {framework}, and there: python -c "
MEGATRON = (
    'Export it with Megatron Bridge: python -c "from megatron.bridge import AutoBridge; '
    "AutoBridge.from_hf_pretrained('BASE').export_ckpt({as_string}, 'OUT')\" (BASE is the model that was trained)"
)
DCP_TO_TORCH = (
    "Put them together: python -m torch.distributed.checkpoint.format_utils dcp_to_torch {place} OUT/pytorch_model.bin "
    + CHECK_PICKLE
)


@dataclass(frozen=True)
class Foreign:
    """A layout by its files.

    Attributes:
        files: each must be there: patterns of paths inside the folder, alternatives between bars.
        what: completes "FOLDER is …"; ``{name}`` is the first file that matches.
        next_step: what to type, with ``{folder}``, ``{above}`` and ``{file}`` (the first one) quoted for a shell,
            ``{as_string}`` and ``{file_as_string}`` as Python writes them, ``{weights}`` the first match of the last
            pattern, ``{parent}`` the folder of the file inside this one, ``{own}`` the folder's name, and ``{stem}``
            the file without its last suffix.
        is_script: whether the file must be TorchScript, which has the suffix of any file of PyTorch.
    """

    files: tuple[str, ...]
    what: str
    next_step: str
    is_script: bool = False


# Folders that are something although they have weights in a file with the usual name.
WITH_WEIGHTS = (
    Foreign(
        ("optimizer.bin|scheduler.bin|random_states_*.pkl|sampler*.bin", "model.safetensors|pytorch_model.bin"),
        "a state of accelerate ({name}): weights without the config.json and the tokenizer that they belong to",
        "Copy its weights: cp {weights} OUT " + CHECK_PICKLE,
    ),
    Foreign(
        ("trainer_state.json|training_args.bin", "model.safetensors|pytorch_model.bin"),
        "a training state ({name}) with weights, but without the config.json and the tokenizer that they belong to",
        "Copy its weights: cp {weights} OUT " + CHECK_PICKLE,
    ),
)
# Sharded, unfinished and foreign states of training.
STATES = (
    Foreign(
        (".metadata", "*.distcp", "meta.pt"),
        "a sharded checkpoint of Lightning ({name})",
        "Put it together: python -m lightning.pytorch.utilities.consolidate_checkpoint {folder}, which writes one file "
        "with a state_dict; save that as OUT/pytorch_model.bin " + CHECK_PICKLE,
    ),
    Foreign(
        ("common.pt", ".metadata|*.distcp|metadata.json"),
        "a distributed checkpoint of Megatron Core ({name})",
        MEGATRON,
    ),
    Foreign(
        ("pytorch_model_fsdp_*/*.distcp|pytorch_model_fsdp_*/.metadata",),
        "a sharded FSDP state of accelerate ({parent}): its weights are in pieces",
        "Put them together: accelerate merge-weights {folder}/{parent} OUT " + CHECK,
    ),
    Foreign(
        (".metadata", "*.distcp"),
        "a distributed checkpoint of PyTorch ({name}): its weights are in pieces",
        DCP_TO_TORCH.replace("{place}", "{folder}"),
    ),
    Foreign(
        ("*.distcp",),
        "a distributed checkpoint of PyTorch without its .metadata ({name}): cut short, or still being written",
        "Copy the whole folder, hidden files included (cp -r), or use an earlier step.",
    ),
    Foreign(
        ("*/.metadata", "*/*.distcp"),
        "a folder with a distributed checkpoint of PyTorch in it ({parent}): its weights are in pieces",
        DCP_TO_TORCH.replace("{place}", "{folder}/{parent}"),
    ),
    Foreign(
        ("zero_to_fp32.py", "global_step*/*"),
        "a DeepSpeed checkpoint ({parent}): its weights are in pieces",
        "Put them together: python {folder}/zero_to_fp32.py {folder} OUT --safe_serialization " + CHECK,
    ),
    Foreign(
        ("global_step*/*mp_rank_*|global_step*/layer_*|checkpoint/*mp_rank_*states.pt",),
        "a DeepSpeed checkpoint ({parent}) without its zero_to_fp32.py: its weights are in pieces",
        "Put them together: python -m deepspeed.utils.zero_to_fp32 {folder} OUT --safe_serialization " + CHECK,
    ),
    Foreign(
        ("*zero_pp_rank_*_optim_states.pt|*mp_rank_*_model_states.pt",),
        "one step of a DeepSpeed checkpoint ({name}): its weights are in pieces",
        "Put them together, from the folder above it: python -m deepspeed.utils.zero_to_fp32 {above} OUT --tag {own} "
        "--safe_serialization " + CHECK,
    ),
    Foreign(
        (
            "mp_rank_*/model_optim_rng.pt|mp_rank_*/model_rng.pt|iter_*/mp_rank_*/model*.pt|release/mp_rank_*/model*.pt"
            "|mp_rank_*/distrib_optim.pt|iter_*/common.pt|iter_*/*.distcp",
        ),
        "a checkpoint of Megatron ({name}): its weights are in shards under Megatron's names",
        MEGATRON,
    ),
    Foreign(
        ("latest_checkpointed_iteration.txt",),
        "the folder of a training run of Megatron, without an iteration in it ({name})",
        "Copy the iteration that it names (iter_…) as well.",
    ),
    Foreign(
        ("context/*", "weights/*"),
        "a checkpoint of NeMo 2 ({name})",
        "Export it: python -c \"from nemo.collections import llm; llm.export_ckpt(path={as_string}, target='hf', "
        "output_path='OUT')\", then: embaudit check OUT",
    ),
    Foreign(
        (
            "_CHECKPOINT_METADATA|orbax.checkpoint|_METADATA|manifest.ocdbt|ocdbt.process_*/*|default/_METADATA"
            "|*/_CHECKPOINT_METADATA|*/manifest.ocdbt|*/default/_METADATA|*/orbax.checkpoint|default/manifest.ocdbt",
        ),
        "a checkpoint of Orbax, from JAX ({name})",
        "Restore it there (orbax.checkpoint.PyTreeCheckpointer().restore({as_string})) and save it under the names of "
        "transformers, with the code that trained it.",
    ),
    Foreign(
        (".zarray|*/.zarray|*/zarr.json",),
        "a folder of arrays (Zarr), as T5X and older Megatron leave them ({name})",
        "Export it to transformers' names with the code that trained it.",
    ),
    Foreign(
        ("*.incomplete|*.part|*.crdownload|*.aria2|.cache/huggingface/download/*.incomplete",),
        "a download that was cut short ({name})",
        "Download it again: what is complete is not fetched twice.",
    ),
    Foreign(
        ("model-*-of-*.safetensors",),
        "shards of weights without their index ({name})",
        'Fetch model.safetensors.index.json, or put them into one file: python -c "from pathlib import Path; from '
        "safetensors.torch import load_file, save_file; save_file({{k: v for f in Path({as_string}).glob('model-*-of-"
        "*.safetensors') for k, v in load_file(f).items()}}, {as_string} + '/model.safetensors', {{'format': 'pt'}})\"",
    ),
    Foreign(
        ("pytorch_model-*-of-*.bin",),
        "shards of weights without their index ({name})",
        "Fetch pytorch_model.bin.index.json as well.",
    ),
    Foreign(
        ("adapter_model.safetensors|adapter_model.bin",),
        "an adapter without its adapter_config.json ({name}): weights that are added to a base model's",
        "Fetch adapter_config.json, then merge it: peft.AutoPeftModelForFeatureExtraction.from_pretrained(FOLDER)"
        ".merge_and_unload().save_pretrained('OUT')",
    ),
    Foreign(
        ("consolidated*.safetensors|consolidated*.pth", "params.json"),
        "weights in the original layout of Llama or Mistral ({name})",
        "Use the repository's version for transformers (with config.json and model.safetensors).",
    ),
    Foreign(
        ("model_index.json",),
        "a pipeline of diffusers ({name}), which makes images",
        "embaudit audits text-embedding checkpoints; its text encoder is in {folder}/text_encoder.",
    ),
    Foreign(
        ("dataset_info.json|dataset_dict.json",),
        "a data set ({name})",
        "Give it as texts: --corpus; and a checkpoint's folder here.",
    ),
)
# Files that hold weights, alone or as all that a folder has. The first pattern of a kind is the usual name.
FILES = (
    Foreign(("*.gguf",), "quantised weights for llama.cpp ({name})", "Use the folder that they were converted from."),
    Foreign(("*.onnx|onnx/*.onnx",), "an ONNX export ({name})", EXPORTED),
    Foreign(("openvino*.xml|openvino/*.xml",), "an OpenVINO export ({name})", EXPORTED),
    Foreign(
        ("*.tflite|*.mlmodel|*.mlpackage/*|*.engine|*.plan|*.ncnn.bin|*.rknn|*.pte",),
        "an export for a runtime ({name})",
        EXPORTED,
    ),
    Foreign(
        ("tf_model.h5|tf_model-*.h5|tf_model.h5.index.json",),
        "TensorFlow weights ({name})",
        BEFORE_5.format(framework="tf-keras")
        + '"from transformers import AutoModel; AutoModel.from_pretrained({as_string}, from_tf=True).save_pretrained('
        "'OUT')\" " + CHECK,
    ),
    Foreign(
        ("flax_model.msgpack|flax_model-*.msgpack|flax_model.msgpack.index.json",),
        "Flax weights ({name})",
        BEFORE_5.format(framework="flax")
        + '"from transformers import AutoModel; AutoModel.from_pretrained({as_string}, from_flax=True).save_pretrained('
        "'OUT')\" " + CHECK,
    ),
    Foreign(
        ("saved_model.pb|*/saved_model.pb|saved_model.pbtxt",),
        "a SavedModel of TensorFlow ({name})",
        EXPORTED,
    ),
    Foreign(
        ("*.ckpt.index|*.ckpt-*.index|ckpt-*.index|*.ckpt.data-*",),
        "a checkpoint of TensorFlow ({name})",
        BEFORE_5.format(framework="tensorflow").removesuffix("-c ")
        + "-m transformers.models.bert.convert_bert_original_tf_checkpoint_to_pytorch --tf_checkpoint_path {stem} "
        "--bert_config_file {folder}/bert_config.json --pytorch_dump_path OUT/pytorch_model.bin " + CHECK_PICKLE,
    ),
    Foreign(("*.keras|*.h5|*.weights.h5",), "a model of Keras ({name})", EXPORTED),
    Foreign(("*.pdparams",), "weights of PaddlePaddle ({name})", "Use the version of this model for PyTorch."),
    Foreign(
        ("*.msgpack",), "weights of Flax ({name})", "Export them to transformers' names with the code that trained."
    ),
    Foreign(
        ("weights*.npz|*.npz",),
        "arrays of MLX or NumPy ({name})",
        'Save them as safetensors: python -c "import numpy, safetensors.numpy as s; s.save_file(dict(numpy.load('
        "{file_as_string})), 'OUT/model.safetensors', {{'format': 'pt'}})\" " + CHECK,
    ),
    Foreign(
        ("*.nemo",),
        "an archive of NeMo ({name})",
        "Unpack it: python -m tarfile -e {file} UNPACKED; model_weights.ckpt in it has NeMo's names, which NeMo's "
        "script for this model converts (scripts/checkpoint_converters).",
    ),
    Foreign(
        ("*.pt|*.ts|*.pth|*.torchscript",),
        "a TorchScript export ({name})",
        'Use the folder that it was exported from, or take its weights out: python -c "import torch; torch.save('
        "torch.jit.load({file_as_string}).state_dict(), 'OUT/pytorch_model.bin')\" " + CHECK_PICKLE,
        is_script=True,
    ),
    Foreign(
        ("*.ckpt|checkpoints/*.ckpt|*/checkpoints/*.ckpt",),
        "a checkpoint of Lightning ({name}): weights beside the state of training",
        'Take the weights out, without the name of the attribute that held the model: python -c "import torch; s = '
        "torch.load({file_as_string}, 'cpu')['state_dict']; torch.save({{k.partition('.')[2]: v for k, v in s.items()}}"
        ", 'OUT/pytorch_model.bin')\" " + CHECK_PICKLE,
    ),
    Foreign(
        ("pytorch_model_fsdp*.bin|model_fsdp*.bin",),
        "an FSDP state of accelerate in one file ({name})",
        "Copy it: cp {file} OUT/pytorch_model.bin " + CHECK_PICKLE,
    ),
    Foreign(
        ("*.zip",),
        "an archive ({name})",
        "Unpack it: python -m zipfile -e {file} UNPACKED, then: embaudit check UNPACKED",
    ),
    Foreign(
        ("*.tar|*.tar.gz|*.tgz|*.tar.bz2|*.tar.xz",),
        "an archive ({name})",
        "Unpack it: python -m tarfile -e {file} UNPACKED, then: embaudit check UNPACKED",
    ),
    Foreign(
        ("*.tar.zst|*.7z|*.rar",),
        "an archive ({name})",
        "Unpack it (tar --zstd -xf, 7z x, unrar x), then: embaudit check UNPACKED",
    ),
)
# What a trainer saves beside weights, by itself.
WITHOUT_WEIGHTS = (
    Foreign(
        (
            "optimizer.pt|optimizer.bin|scheduler.pt|scheduler.bin|trainer_state.json|training_args.bin|rng_state*.pth"
            "|random_states_*.pkl|optim_states*.pt|scaler.pt",
        ),
        "the state of a training ({name}) without the model's weights",
        "Use another step of the run, or save the model as well: trainer.save_model('OUT')",
    ),
)
# Weights that may be the model's under another name.
OTHER_NAMES = (
    Foreign(
        ("*.safetensors",),
        "a folder with weights under another name ({name})",
        "If they are the model's: cp {file} {folder}/model.safetensors",
    ),
    Foreign(
        ("*.bin|*.pt|*.pth",),
        "a folder with weights under another name ({name})",
        "If they are the model's (a dictionary of tensors): cp {file} {folder}/pytorch_model.bin, then: embaudit check "
        "{folder} --allow-pickle",
    ),
)
