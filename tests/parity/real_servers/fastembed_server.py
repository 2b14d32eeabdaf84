"""Serves an ONNX model with fastembed, as OpenAI's API does: python fastembed_server.py FOLDER PORT."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

folder, port = sys.argv[1:]
NAME = "local/served"
TextEmbedding.add_custom_model(
    model=NAME,
    pooling=PoolingType.MEAN,
    normalization=True,
    sources=ModelSource(hf=NAME),
    dim=384,
    model_file="model.onnx",
)
model = TextEmbedding(model_name=NAME, specific_model_path=folder, threads=1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(200 if self.path == "/v1/models" else 404, {"data": [{"id": NAME}]})

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        vectors = enumerate(model.embed(texts))
        self.answer(200, {"data": [{"index": place, "embedding": vector.tolist()} for place, vector in vectors]})

    def answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
