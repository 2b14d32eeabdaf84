"""Code that comes with a checkpoint, or that it names, is not run without --trust-remote-code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hostile import code
from tiny_models import change_json, with_dense

from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.checkpoint.card import named_backbone
from embaudit.words.errors import CheckpointError, EmbauditError

OWN_CODE = "own_code.py"


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from transformers import dynamic_module_utils

    # Where transformers would copy code to and import it from.
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(tmp_path / "modules")
    return tmp_path / "code-was-run"


def load(folder: Path, *, trust_remote_code: bool = False) -> object:
    return load_checkpoint(str(folder), LoadOptions(device="cpu", trust_remote_code=trust_remote_code))


def own_config(folder: Path) -> None:
    change_json(
        folder / "config.json", model_type="own", auto_map={"AutoConfig": "own_code.C", "AutoModel": "own_code.M"}
    )


def own_config_of_a_known_type(folder: Path) -> None:
    change_json(folder / "config.json", auto_map={"AutoConfig": "own_code.C", "AutoModel": "own_code.M"})


def own_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    change_json(folder / "tokenizer_config.json", tokenizer_class="T", auto_map={"AutoTokenizer": ["own_code.T", None]})


def code_of_another_repository(folder: Path) -> None:
    auto_map = {"AutoConfig": "evil/repository--own_code.C", "AutoModel": "evil/repository--own_code.M"}
    change_json(folder / "config.json", model_type="own", auto_map=auto_map)


def own_module(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["type"] = "own_code.Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))


def own_activation(folder: Path) -> None:
    dense = {"in_features": 32, "out_features": 8, "activation_function": "own_code.Activation"}
    with_dense(folder, dense)


def kernel_from_the_hub(folder: Path) -> None:
    change_json(folder / "config.json", attn_implementation="evil/kernel")


ASKS: dict[str, Callable[[Path], None]] = {
    ask.__name__: ask
    for ask in (own_config, own_tokenizer, code_of_another_repository, own_module, own_activation, kernel_from_the_hub)
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_code_is_not_run_unasked(victim: Path, marker: Path, ask: Callable[[Path], None]) -> None:
    (victim / OWN_CODE).write_text(code(marker))
    ask(victim)
    with pytest.raises(CheckpointError) as caught:
        load(victim)
    assert caught.value.next_step
    if ask is own_config:
        assert "requires its own code to be run" in caught.value.happened
        assert "--trust-remote-code" in caught.value.next_step
    assert not marker.exists()
    assert not list(marker.parent.rglob("modules/**/own_code.py"))


def test_code_beside_a_known_type_is_passed_over(victim: Path, marker: Path) -> None:
    """transformers has its own class for the type: the checkpoint's is not needed, and not run."""
    (victim / OWN_CODE).write_text(code(marker))
    own_config_of_a_known_type(victim)
    with suppress(EmbauditError):
        load(victim)
    assert not marker.exists()


def test_the_trap_does_spring_where_code_is_trusted(victim: Path, marker: Path) -> None:
    """A test of the tests: the same folder with the flag runs its code."""
    (victim / OWN_CODE).write_text(code(marker))
    own_config(victim)
    with pytest.raises(EmbauditError):
        load(victim, trust_remote_code=True)  # the module defines no class C
    assert marker.exists()


@pytest.mark.parametrize("name", ["conftest.py", "sitecustomize.py", "torch.py", "json.py", "__init__.py", "setup.py"])
def test_python_files_that_lie_about_are_not_imported(
    victim: Path, marker: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (victim / name).write_text(code(marker))
    monkeypatch.chdir(victim)
    load(Path())
    assert not marker.exists()


def test_the_front_matter_of_a_model_card_is_data(victim: Path, marker: Path) -> None:
    """YAML can name Python objects to build; a safe reader builds none."""
    card = f"---\nbase_model: !!python/object/apply:os.system ['touch {marker}']\n---\n# A model\n"
    (victim / "README.md").write_text(card)
    with pytest.raises(EmbauditError):
        named_backbone(victim, str(victim))
    assert not marker.exists()


# ---- modules by name ----


def test_a_file_beside_a_named_module_takes_no_packages_place(tmp_path: Path) -> None:
    """One with the name of a module that is imported later is not run in its place."""
    (tmp_path / "mine.py").write_text("def embed(texts): return [[1.0, 2.0] for text in texts]")
    trap = f"open({str(tmp_path / 'ran')!r}, 'w').close()"
    for name in ("colorsys", "tenacity", "scipy"):
        (tmp_path / f"{name}.py").write_text(trap)
    code = (
        "from embaudit.embedders.object.interfaces import import_object; import_object('python:mine:embed'); "
        "import colorsys, tenacity, scipy; print(colorsys.__file__)"
    )
    # -P: as a command that is installed starts, without the current folder.
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not done.stdout.startswith(str(tmp_path))
    assert not (tmp_path / "ran").exists()
