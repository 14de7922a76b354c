"""Encode texts with a sentence encoder that lies in a folder, as an ONNX file with its tokenizer.

The folder is laid out as Hugging Face does it: `model.onnx` in it or in `onnx/` below it, `tokenizer.json`
beside or above it, and perhaps `sentence_bert_config.json` and `1_Pooling/config.json`, which are obeyed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archivist.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_TOKENS = 256
BATCH = 32
_DIGESTED_BYTES = 65_536
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_INSTALL = "pip install 'archivist-memory[onnx]'"


class OnnxEmbedder:
    """A local sentence encoder. The files are found at once, the model is read when it is first needed."""

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        if not folder.is_dir():
            raise ConfigError(f"no folder {str(folder)!r}", hint="name the folder that holds the ONNX model")
        self._folder = folder
        self._threads = threads
        self._model_file = _model_file(folder)
        self._tokenizer_file = _tokenizer_file(folder, self._model_file)
        self._name = f"onnx-{folder.resolve().name}-{_digest(self._model_file)}"
        self._encoder: _Encoder | None = None

    @property
    def name(self) -> str:
        """Return the folder's name and a digest of the model."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Return how long its vectors are."""
        return self._load_encoder().dimensions

    def embed_query(self, text: str) -> Sequence[float]:
        """Return one text's vector; of a text without any known word, zeros."""
        vector: list[float] = self._load_encoder().encode([text])[0].tolist()
        return vector

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text, many at once."""
        return self._load_encoder().encode(texts)

    def _load_encoder(self) -> _Encoder:
        if self._encoder is None:
            self._encoder = _build_encoder(
                self._folder, self._model_file, self._tokenizer_file, self._threads
            )
        return self._encoder


@dataclass(frozen=True, slots=True)
class _Encoder:
    """A model in memory, with what its files say about how to use it."""

    session: Any
    tokenizer: Any
    output: str
    pools_first_token: bool
    unknown_token: int | None
    dimensions: int = 0

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text; texts of like length share a batch, so that little is padded."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        # A lone surrogate is legal in Python's strings, but not in the tokenizer's.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encodings = self.tokenizer.encode_batch(clean)
        places = [place for place, encoding in enumerate(encodings) if self._has_known_token(encoding)]
        places.sort(key=lambda place: len(encodings[place].ids))
        for start in range(0, len(places), BATCH):
            batch = places[start : start + BATCH]
            vectors[batch] = _normalize_rows(self.run([encodings[place] for place in batch]))
        return vectors

    def run(self, encodings: Sequence[Any]) -> NDArray[np.float32]:
        """Return what the model makes of a batch, one row each, not yet of unit length."""
        import numpy as np

        longest = max(len(encoding.ids) for encoding in encodings)
        fields = {
            "input_ids": _pad_rows([encoding.ids for encoding in encodings], longest, self._padding_token()),
            "attention_mask": _pad_rows([encoding.attention_mask for encoding in encodings], longest, 0),
            "token_type_ids": _pad_rows([encoding.type_ids for encoding in encodings], longest, 0),
        }
        feed = {
            each.name: fields[each.name].astype(np.int32 if "int32" in each.type else np.int64)
            for each in self.session.get_inputs()
        }
        hidden = np.asarray(self.session.run([self.output], feed)[0], dtype=np.float32)
        if hidden.ndim == 2:
            return hidden
        if self.pools_first_token:
            return np.asarray(hidden[:, 0], dtype=np.float32)
        mask = fields["attention_mask"][:, :, None].astype(np.float32)
        return np.asarray((hidden * mask).sum(axis=1) / mask.sum(axis=1), dtype=np.float32)

    def _has_known_token(self, encoding: Any) -> bool:
        return any(
            not is_special and token != self.unknown_token
            for token, is_special in zip(encoding.ids, encoding.special_tokens_mask, strict=True)
        )

    def _padding_token(self) -> int:
        for word in ("[PAD]", "<pad>", "<|pad|>"):
            token = self.tokenizer.token_to_id(word)
            if token is not None:
                return int(token)
        return 0


def _build_encoder(folder: Path, model_file: Path, tokenizer_file: Path, threads: int) -> _Encoder:
    session = _open_session(model_file, threads)
    tokenizer = _open_tokenizer(tokenizer_file)
    tokenizer.no_padding()
    tokenizer.enable_truncation(_max_tokens(folder, model_file))
    unknown = getattr(tokenizer.model, "unk_token", None)
    output = _choose_output(session)
    encoder = _Encoder(
        session,
        tokenizer,
        output.name,
        _pools_first_token(folder, model_file),
        tokenizer.token_to_id(unknown) if isinstance(unknown, str) else None,
    )
    width = output.shape[-1] if output.shape else None
    if not isinstance(width, int):
        width = encoder.run(tokenizer.encode_batch(["one"])).shape[1]
    return _Encoder(session, tokenizer, output.name, encoder.pools_first_token, encoder.unknown_token, width)


def _open_session(path: Path, threads: int) -> Any:
    """Open the model, and see that it is one of sentences."""
    try:
        import onnxruntime  # type: ignore[import-untyped]
        from onnxruntime.capi import onnxruntime_pybind11_state as state  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigError("the package 'onnxruntime' is not installed", hint=_INSTALL) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
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


def _open_tokenizer(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ConfigError("the package 'tokenizers' is not installed", hint=_INSTALL) from None
    try:
        return Tokenizer.from_file(str(path))
    # The library raises nothing more exact.
    except Exception as error:
        raise ConfigError(f"{str(path)!r} is not a tokenizer: {_first_line(error)}") from error


def _choose_output(session: Any) -> Any:
    """Choose the output to read: the finished sentence, else every token's state, else what there is.

    A pooler's output comes last, because sentence encoders are not trained through it.
    """
    outputs = session.get_outputs()
    by_name = {each.name: each for each in outputs}
    for name in ("sentence_embedding", "last_hidden_state", "token_embeddings"):
        if name in by_name:
            return by_name[name]
    return next((each for each in outputs if len(each.shape) == 3), outputs[0])


def _model_file(folder: Path) -> Path:
    """Return the model: by its usual name, the only one, or the only quantized one."""
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


def _max_tokens(folder: Path, model_file: Path) -> int:
    """Return where texts are cut: as the folder says, and never beyond what the model can place."""
    wanted = _read_setting(folder, model_file, "sentence_bert_config.json", "max_seq_length")
    most = wanted if isinstance(wanted, int) and wanted > 2 else MOST_TOKENS
    places = _read_setting(folder, model_file, "config.json", "max_position_embeddings")
    return min(most, places) if isinstance(places, int) and places > 2 else most


def _pools_first_token(folder: Path, model_file: Path) -> bool:
    return _read_setting(folder, model_file, "1_Pooling/config.json", "pooling_mode_cls_token") is True


def _read_setting(folder: Path, model_file: Path, name: str, key: str) -> object:
    """Return one value of a JSON file of the model, if there is such a file; None otherwise."""
    import json

    for place in (folder, model_file.parent, model_file.resolve().parent.parent):
        if (place / name).is_file():
            try:
                values = json.loads((place / name).read_text("utf-8"))
            except ValueError as error:
                raise ConfigError(f"{str(place / name)!r} is not JSON: {error}") from None
            return values.get(key) if isinstance(values, dict) else None
    return None


def _digest(path: Path) -> str:
    """Digest size, head and tail: enough to tell models apart, and quick for large ones."""
    from hashlib import sha256

    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_DIGESTED_BYTES)
        file.seek(max(0, size - _DIGESTED_BYTES))
        tail = file.read()
    return sha256(b"%d\n" % size + head + tail).hexdigest()[:12]


def _pad_rows(rows: Sequence[Sequence[int]], length: int, filling: int) -> NDArray[np.int64]:
    import numpy as np

    table = np.full((len(rows), length), filling, dtype=np.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def _normalize_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
