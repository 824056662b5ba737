"""Embedding functions: vectors computed from other columns when rows are added, and from queries when they are searched for.

    @register("letters")
    class Letters(TextEmbeddingFunction):
        def ndims(self):
            return 26
        def generate_embeddings(self, texts):
            return [[text.count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    letters = get_registry().get("letters").create()

    class Note(LanceModel):
        text: str = letters.SourceField()
        vector: Vector(letters.ndims()) = letters.VectorField()

The functions of model vendors (OpenAI and others) are not supported yet.
"""

from .. import _not_built
from .base import EmbeddingFunction, EmbeddingFunctionConfig, TextEmbeddingFunction
from .registry import EmbeddingFunctionRegistry, get_registry, register

__all__ = [
    "EmbeddingFunction",
    "EmbeddingFunctionConfig",
    "EmbeddingFunctionRegistry",
    "TextEmbeddingFunction",
    "get_registry",
    "register",
]


def __getattr__(name: str):
    return _not_built.lookup("embeddings", name)
