"""Encode texts with a local sentence encoder: a folder with an ONNX model and its tokenizer.

The folder has the layout of Hugging Face: `model.onnx` in it or in `onnx/` below it, `tokenizer.json` beside
or above it, and optionally `sentence_bert_config.json` and `1_Pooling/config.json`, which are followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archivist.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_TOKENS = 256
# At 256 tokens the process takes 1.5 GB with batches of 32, .52 GB with 8, .36 GB with 4, at one speed.
BATCH = 4
_DIGESTED_BYTES = 65_536
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_INSTALL = "pip install 'archivist-memory[onnx]'"


class OnnxEmbedder:
    """A local sentence encoder. Its files are found at once, the model is loaded when first needed."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(f"no folder {str(folder)!r}", hint="name the folder that holds the ONNX model")
        self._folder = folder
        self._model_file = _model_file(folder)
        self._tokenizer_file = _tokenizer_file(folder, self._model_file)
        self.name = f"onnx-{folder.resolve().name}-{_digest(self._model_file)}"

    @cached_property
    def dimensions(self) -> int:
        """Return the length of its vectors."""
        width = self._output.shape[-1] if self._output.shape else None
        return width if isinstance(width, int) else self._run(self._tokenizer.encode_batch(["one"])).shape[1]

    def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of one text; zeros for a text without any known word."""
        vector: list[float] = self.embed_texts([text])[0].tolist()
        return vector

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text; texts of similar length share a batch, so that padding is short."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        # A lone surrogate is legal in Python's strings, but not in the tokenizer's.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encodings = self._tokenizer.encode_batch(clean)
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        unknown_token = self._tokenizer.token_to_id(unknown) if isinstance(unknown, str) else None
        places = [
            place
            for place, encoding in enumerate(encodings)
            if any(
                not is_special and token != unknown_token
                for token, is_special in zip(encoding.ids, encoding.special_tokens_mask, strict=True)
            )
        ]
        places.sort(key=lambda place: len(encodings[place].ids))
        for start in range(0, len(places), BATCH):
            batch = places[start : start + BATCH]
            rows = self._run([encodings[place] for place in batch])
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            vectors[batch] = rows / np.where(lengths > 0, lengths, 1)
        return vectors

    def _run(self, encodings: Sequence[Any]) -> NDArray[np.float32]:
        """Return the model's output for a batch, one row each, not yet of unit length."""
        import numpy as np

        longest = max(len(encoding.ids) for encoding in encodings)
        tokens = (self._tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>", "<|pad|>"))
        padding = next((token for token in tokens if token is not None), 0)
        for encoding in encodings:
            encoding.pad(longest, pad_id=padding)
        fields = {
            "input_ids": [encoding.ids for encoding in encodings],
            "attention_mask": [encoding.attention_mask for encoding in encodings],
            "token_type_ids": [encoding.type_ids for encoding in encodings],
        }
        feed = {
            each.name: np.array(fields[each.name], np.int32 if "int32" in each.type else np.int64)
            for each in self._session.get_inputs()
        }
        hidden = np.asarray(self._session.run([self._output.name], feed)[0], dtype=np.float32)
        if hidden.ndim == 2:
            return hidden
        if self._pools_first_token:
            return np.asarray(hidden[:, 0], dtype=np.float32)
        mask = np.array(fields["attention_mask"], np.float32)[:, :, None]
        return np.asarray((hidden * mask).sum(axis=1) / mask.sum(axis=1), dtype=np.float32)

    @cached_property
    def _session(self) -> Any:
        """Open the model and check that it is a sentence encoder."""
        path = self._model_file
        try:
            import onnxruntime  # type: ignore[import-untyped]
            from onnxruntime.capi import onnxruntime_pybind11_state as state  # type: ignore[import-untyped]
        except ImportError:
            raise ConfigError("the package 'onnxruntime' is not installed", hint=_INSTALL) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        broken = (
            state.InvalidProtobuf,
            state.InvalidGraph,
            state.InvalidArgument,
            state.Fail,
            state.NotImplemented,
        )
        try:
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except (*broken, RuntimeError) as error:
            raise ConfigError(
                f"{str(path)!r} is not an ONNX model that can be run here: {_first_line(error)}",
                hint="export the encoder again, or name another folder",
            ) from error
        names = {each.name for each in session.get_inputs()}
        if "input_ids" not in names or names - set(_INPUTS):
            raise ConfigError(
                f"{str(path)!r} is not a sentence encoder: it wants {', '.join(sorted(names))}",
                hint=f"its inputs must be among {', '.join(_INPUTS)}",
            )
        return session

    @cached_property
    def _output(self) -> Any:
        """Return the output to read: the sentence embedding, else the token states, else any.

        A pooler's output comes last, because sentence encoders are not trained through it.
        """
        outputs = self._session.get_outputs()
        by_name = {each.name: each for each in outputs}
        for name in ("sentence_embedding", "last_hidden_state", "token_embeddings"):
            if name in by_name:
                return by_name[name]
        return next((each for each in outputs if len(each.shape) == 3), outputs[0])

    @cached_property
    def _tokenizer(self) -> Any:
        """Return the tokenizer; it cuts texts as configured, never longer than the model has positions."""
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise ConfigError("the package 'tokenizers' is not installed", hint=_INSTALL) from None
        path = str(self._tokenizer_file)
        try:
            tokenizer = Tokenizer.from_file(path)
        # The library raises nothing more exact.
        except Exception as error:
            raise ConfigError(f"{path!r} is not a tokenizer: {_first_line(error)}") from error
        tokenizer.no_padding()
        wanted = self._read_setting("sentence_bert_config.json", "max_seq_length")
        positions = self._read_setting("config.json", "max_position_embeddings")
        most = wanted if isinstance(wanted, int) and wanted > 2 else MOST_TOKENS
        tokenizer.enable_truncation(
            min(most, positions) if isinstance(positions, int) and positions > 2 else most
        )
        return tokenizer

    @cached_property
    def _pools_first_token(self) -> bool:
        return self._read_setting("1_Pooling/config.json", "pooling_mode_cls_token") is True

    def _read_setting(self, name: str, key: str) -> object:
        """Return one value of a JSON file of the model; None without such a file."""
        import json

        model_file = self._model_file
        for folder in (self._folder, model_file.parent, model_file.resolve().parent.parent):
            if (folder / name).is_file():
                try:
                    values = json.loads((folder / name).read_text("utf-8"))
                except ValueError as error:
                    raise ConfigError(f"{str(folder / name)!r} is not JSON: {error}") from None
                return values.get(key) if isinstance(values, dict) else None
        return None


def _model_file(folder: Path) -> Path:
    """Return the model: the one of the usual name, the only one, or the only quantized one."""
    for place in (folder, folder / "onnx"):
        found = sorted(place.glob("*.onnx"))
        usual = [path for path in found if path.name == "model.onnx"]
        small = [path for path in found if "quant" in path.name or "int8" in path.name]
        for choice in (usual, found, small):
            if len(choice) == 1:
                return choice[0]
        if found:
            raise ConfigError(
                f"{str(place)!r} holds several models: {', '.join(path.name for path in found)}",
                hint="keep one of them, or call it model.onnx",
            )
    raise ConfigError(
        f"no ONNX model in {str(folder)!r}", hint="it is expected as model.onnx or onnx/model.onnx"
    )


def _tokenizer_file(folder: Path, model_file: Path) -> Path:
    above = folder.resolve().parent
    for place in (model_file.parent, folder, folder / "tokenizer", above, above / "tokenizer"):
        if (place / "tokenizer.json").is_file():
            return place / "tokenizer.json"
    raise ConfigError(f"no tokenizer.json for {str(model_file)!r}", hint="put the model's own one beside it")


def _digest(path: Path) -> str:
    """Digest size, head and tail: enough to distinguish models, and quick for large ones."""
    from hashlib import sha256

    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_DIGESTED_BYTES)
        file.seek(max(0, size - _DIGESTED_BYTES))
        tail = file.read()
    return sha256(b"%d\n" % size + head + tail).hexdigest()[:12]


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
