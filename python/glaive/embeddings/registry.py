"""The registry of embedding functions: name -> class, variables, and how functions are written into a table's metadata."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Type

from .. import _not_built
from .base import EmbeddingFunction, EmbeddingFunctionConfig

__all__ = ["EmbeddingFunctionRegistry", "get_registry", "register"]

_METADATA_KEY = "embedding_functions"

# Names under which the LanceDB package registers functions of model vendors, none of which is built.
_VENDORS = {
    "bedrock-text": "BedRockText",
    "cohere": "CohereEmbeddingFunction",
    "colbert": "ColbertEmbeddings",
    "colpali": "ColPaliEmbeddings",
    "gemini-text": "GeminiText",
    "gte-text": "GteEmbeddings",
    "huggingface": "TransformersEmbeddingFunction",
    "imagebind": "ImageBindEmbeddings",
    "instructor": "InstructorEmbeddingFunction",
    "jina": "JinaEmbeddings",
    "ollama": "OllamaEmbeddings",
    "open-clip": "OpenClipEmbeddings",
    "openai": "OpenAIEmbeddings",
    "sentence-transformers": "SentenceTransformerEmbeddings",
    "siglip": "SigLipEmbeddings",
    "voyageai": "VoyageAIEmbeddingFunction",
    "watsonx": "WatsonxEmbeddings",
}


class EmbeddingFunctionRegistry:
    """Names of embedding functions, one registry per process: `get_registry()`."""

    @classmethod
    def get_instance(cls) -> "EmbeddingFunctionRegistry":
        """The registry of the process."""
        return _registry

    def __init__(self) -> None:
        self._functions: Dict[str, Type[EmbeddingFunction]] = {}
        self._variables: Dict[str, str] = {}

    def register(self, alias: Optional[str] = None) -> Callable[[type], type]:
        """Class decorator: registers an `EmbeddingFunction` under `alias`, or the name of the class. TypeError for others."""

        def decorate(cls: type) -> type:
            if not (isinstance(cls, type) and issubclass(cls, EmbeddingFunction)):
                raise TypeError("Must be a subclass of EmbeddingFunction")
            name = alias or cls.__name__
            self._functions[name] = cls
            cls.__embedding_function_registry_alias__ = name  # type: ignore[attr-defined]
            return cls

        return decorate

    def reset(self) -> None:
        """Forgets all functions."""
        self._functions = {}

    def get(self, name: str) -> Type[EmbeddingFunction]:
        """The class registered under `name`. KeyError when there is none."""
        if name not in self._functions and name in _VENDORS:
            return _not_built.lookup("embeddings", _VENDORS[name])
        return self._functions[name]

    def set_var(self, name: str, value: str) -> None:
        """Sets a variable, which "$var:NAME" in arguments of functions stands for. Kept in this process only."""
        if ":" in name:
            raise ValueError("the name of a variable must not contain ':'")
        self._variables[name] = value

    def get_var(self, name: str) -> str:
        """The value of a variable. KeyError when it is not set."""
        return self._variables[name]

    # --- metadata of tables ---

    def function_to_metadata(self, conf: EmbeddingFunctionConfig) -> Dict[str, Any]:
        """One function as it is written into metadata."""
        function = conf.function
        name = getattr(type(function), "__embedding_function_registry_alias__", type(function).__name__)
        return {
            "name": name,
            "model": function.safe_model_dump(),
            "source_column": conf.source_column,
            "vector_column": conf.vector_column,
        }

    def get_table_metadata(self, func_list: Optional[List[EmbeddingFunctionConfig]]) -> Optional[Dict[str, str]]:
        """The metadata of a table with these functions; None for none."""
        if not func_list:
            return None
        return {_METADATA_KEY: json.dumps([self.function_to_metadata(conf) for conf in func_list], indent=2)}

    def parse_functions(self, metadata: Optional[Dict[bytes, bytes]]) -> Dict[str, EmbeddingFunctionConfig]:
        """Vector column -> function, out of a table's metadata. KeyError for a function that is not registered."""
        text = (metadata or {}).get(_METADATA_KEY.encode())
        if text is None:
            return {}
        return {entry["vector_column"]: self._parse(entry) for entry in json.loads(text)}

    def _parse(self, entry: Dict[str, Any]) -> EmbeddingFunctionConfig:
        function = self.get(entry["name"]).create(**entry["model"])
        return EmbeddingFunctionConfig(
            vector_column=entry["vector_column"], source_column=entry["source_column"], function=function
        )


_registry = EmbeddingFunctionRegistry()


def register(name: Optional[str] = None) -> Callable[[type], type]:
    """Class decorator; see `EmbeddingFunctionRegistry.register`."""
    return _registry.register(name)


def get_registry() -> EmbeddingFunctionRegistry:
    """The registry of the process."""
    return _registry
