"""Writes a checkpoint's transformer as ONNX: python export_onnx.py FOLDER TARGET."""

import sys

import torch

from embaudit.checkpoint import LoadOptions, load_checkpoint

source, target = sys.argv[1:]
model = load_checkpoint(source, LoadOptions(device="cpu")).model
NAMES = ("input_ids", "attention_mask", "token_type_ids")


class States(torch.nn.Module):
    """The last states alone."""

    def __init__(self) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        given = dict(zip(NAMES, (input_ids, attention_mask, token_type_ids), strict=True))
        return self.model(**given).last_hidden_state


ids = torch.randint(5, 1_000, (2, 9))
sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=512)}
torch.onnx.export(
    States().eval(),
    (ids, torch.ones_like(ids), torch.zeros_like(ids)),
    target,
    input_names=NAMES,
    output_names=("last_hidden_state",),
    dynamic_shapes=(sizes, sizes, sizes),
    external_data=False,
)
