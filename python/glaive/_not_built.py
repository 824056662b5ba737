"""Modules and names of the LanceDB API that programs import, and of which nothing is built yet.

Importing them works, and so does deriving a class from one, so that a program which only mentions a feature runs. Using a name
raises NotImplementedError that says which it is. A module that exists as a file always wins over its line in the tables here.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Dict, Optional

_PACKAGE = __name__.rpartition(".")[0]

# Module below glaive -> names of its classes and functions.
MODULES: Dict[str, str] = {
    "catalog": "AsyncCatalog Catalog ListDatabasesResponse connect_catalog connect_catalog_async",
    "context": "Contextualizer contextualize",
    "embeddings.bedrock": "BedRockText",
    "embeddings.cohere": "CohereEmbeddingFunction",
    "embeddings.colpali": "ColPaliEmbeddings",
    "embeddings.gemini_text": "GeminiText",
    "embeddings.gte": "GteEmbeddings",
    "embeddings.imagebind": "ImageBindEmbeddings",
    "embeddings.instructor": "InstructorEmbeddingFunction",
    "embeddings.jinaai": "JinaEmbeddings is_valid_url",
    "embeddings.ollama": "OllamaEmbeddings",
    "embeddings.open_clip": "OpenClipEmbeddings",
    "embeddings.openai": "OpenAIEmbeddings",
    "embeddings.sentence_transformers": "SentenceTransformerEmbeddings",
    "embeddings.siglip": "SigLipEmbeddings",
    "embeddings.transformers": "ColbertEmbeddings TransformersEmbeddingFunction",
    "embeddings.voyageai": "VoyageAIEmbeddingFunction",
    "embeddings.watsonx": "WatsonxEmbeddings",
    "functions": "ApplicationInput AssignmentMapping FunctionApplication FunctionArtifact FunctionArtifactContent "
    "FunctionArtifactRequest FunctionBinding FunctionImage FunctionOutput FunctionParameter FunctionRegistrationRequest "
    "FunctionResultField FunctionSignature FunctionVersion FunctionVersionRef InputBinding OutputMapping PythonAdapterSpec "
    "PythonEnvironmentSpec PythonRuntimeSpec RefreshColumnResult SecretBinding SecretReference UdfDefinition udf",
    "io": "",
    "materialized_view": "AsyncMaterializedView MaterializedView MaterializedViewDefinition VectorDedupSource normalize_select "
    "vector_dedup",
    "namespace_utils": "",
    "otel": "instrument_lancedb_metrics",
    "permutation": "Permutation PermutationBuilder Permutations Transforms permutation_builder",
    "remote.db": "RemoteDBConnection",
    "remote.table": "RemoteTable",
    "rerankers.answerdotai": "AnswerdotaiRerankers",
    "rerankers.base": "Reranker",
    "rerankers.cohere": "CohereReranker",
    "rerankers.colbert": "ColbertReranker",
    "rerankers.cross_encoder": "CrossEncoderReranker",
    "rerankers.jinaai": "JinaReranker",
    "rerankers.linear_combination": "LinearCombinationReranker",
    "rerankers.mrr": "MRRReranker",
    "rerankers.openai": "OpenaiReranker",
    "rerankers.rrf": "RRFReranker",
    "rerankers.typesafe": "TypeSafeReranker",
    "rerankers.util": "check_reranker_result",
    "rerankers.voyageai": "VoyageAIReranker",
    "rerankers.watsonx": "WatsonxReranker",
    "scannable": "Scannable to_scannable",
    "secrets": "EnvVarSecret SecretInfo validate_env_variable validate_namespace_path validate_secret_name",
    "sql": "AsyncQuery Query",
    "streaming": "StreamingDataset",
    "view": "ViewDescription",
    "lance.arrow": "EncodedImageArray EncodedImageScalar EncodedImageType FixedShapeImageTensorArray FixedShapeImageTensorScalar "
    "FixedShapeImageTensorType ImageArray ImageScalar ImageURIArray ImageURIScalar ImageURIType cast",
    "lance.bitmap": "Bitmap",
    "lance.debug": "",
    "lance.download": "check_lindera download_jieba download_lindera",
    "lance.hf": "HuggingFaceConverter",
    "lance.indices": "IndexFileVersion IndexSegment IndexSegmentDescription SupportedDistributedIndices",
    "lance.indices.builder": "IndexConfig IndicesBuilder",
    "lance.indices.ivf": "IvfModel",
    "lance.indices.pq": "PqModel",
    "lance.io": "",
    "lance.log": "set_logger",
    "lance.namespace": "DirectoryNamespace DynamicContextProvider RestAdapter RestNamespace",
    "lance.otel": "instrument_lance_metrics",
    "lance.progress": "FileSystemFragmentWriteProgress FragmentWriteProgress IndexProgress NoopFragmentWriteProgress",
    "lance.query": "BooleanQuery BoostQuery CombinedFieldsQuery DocumentGranularity FullTextOperator FullTextQuery FullTextQueryType "
    "MatchQuery MinHashQuery MultiMatchQuery Occur PhraseQuery",
    "lance.sampler": "FragmentSampler FullScanSampler PrioritizedItem Sampler ShardedBatchSampler ShardedFixedBatchSampler ShardedFragmentSampler "
    "maybe_sample reservoir_sampling",
    "lance.schema": "LanceSchema json_to_schema schema_to_json",
    "lance.torch": "preferred_device",
    "lance.torch.data": "LanceDataset SafeLanceDataset concat_batches get_safe_loader",
    "lance.torch.distance": "cosine_distance dot_distance l2_distance pairwise_cosine pairwise_l2",
    "lance.torch.kmeans": "KMeans",
    "lance.tracing": "capture_trace_events trace_to_chrome",
    "lance.util": "HNSW KMeans validate_vector_index",
}

# Module that is built in part -> names that it lacks.
PARTIAL: Dict[str, str] = {
    "": "AsyncCatalog AsyncSqlQuery Catalog ListDatabasesResponse QueryDescription SqlQuery ViewDescription",
    "_lancedb": "FtsToken FunctionErrorFragment FunctionErrorRecord FunctionErrors IndexConfig JobDescription JobFailureInfo JobInfo "
    "async_permutation_builder connect connect_catalog connect_namespace connect_namespace_client expr_col expr_func "
    "expr_lit fts_query_to_json lancedb_metrics_catalog register_lancedb_metrics_recorder snapshot_lancedb_metrics tokenize",
    "common": "Credential",
    "embeddings.utils": "FunctionWrapper RateLimiter api_key_not_found_help create_import_stub is_flash_attn_2_available weak_lru",
    "lance": "BlobColumn BlobDescriptor BlobDescriptorArrayBuilder CleanupCandidateFile CleanupExplanation CleanupReferencedBranch "
    "CleanupStats DataStatistics DatasetBasePath DedicatedBlobWriter FFILanceTableProvider FieldStatistics FtsToken Index IndexFile "
    "IndexProgress PackedBlobWriter ScanStatistics bytes_read_counter iops_counter set_logger tokenize",
    "lance.blob": "BlobColumn BlobIterator",
    "lance.dataset": "AlterColumn AutoCleanupConfig Branch BulkCommitResult ColumnOrdering DataStatistics DatasetDelta "
    "DatasetStats DeleteResult ExecuteResult FieldStatistics Index IndexFile IndexInformation "
    "SqlQuery SqlQueryBuilder Tag UpdateResult VectorIndexReader VectorSearchQuery Version VersionRef",
    "lance.file": "ListResult",
    "lance.fragment": "FragmentSession RowDatasetVersionMeta RowIdMeta RowIdSequence",
    "lance.vector": "compute_partitions compute_pq_codes train_ivf_centroids_on_accelerator train_pq_codebook_on_accelerator",
    "query": "AsyncFTSQuery AsyncHybridQuery BaseQueryBuilder LanceFtsQueryBuilder LanceHybridQueryBuilder",
    "table": "FragmentStatistics FragmentSummaryStats IndexStatistics TableStatistics",
    "util": "attempt_import_or_raise batch_to_tensor batch_to_tensor_dict batch_to_tensor_rows fs_from_uri tbl_to_tensor",
}

# Packages whose modules' names can be imported from the package itself.
_GATHERING = ("embeddings", "rerankers")


class _Refusing(type):
    """Class of placeholder classes: what one would call on them is not built either."""

    def __getattr__(cls, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        raise _refusal(f"{cls.__qualname__}.{name}")


def _refusal(what: str):
    from .exceptions import NotSupportedError

    return NotSupportedError(f"{what} is not supported yet")


def placeholder(name: str, module: str):
    """Stands for a class (a name that begins with a capital) or a function that is not built."""
    if not name[0].isupper():

        def call(*args, **kwargs):
            raise _refusal(f"{module}.{name}")

        call.__name__ = call.__qualname__ = name
        call.__module__ = module
        call.__doc__ = "Not supported yet: raises NotImplementedError."
        return call

    def new(cls, *args, **kwargs):
        raise _refusal(f"{module}.{name}" if cls is made else f"{cls.__qualname__}, which is based on {module}.{name},")

    doc = "Not supported yet: making one raises NotImplementedError."
    made = _Refusing(name, (), {"__new__": new, "__module__": module, "__doc__": doc})
    return made


def _names_of(relative: str) -> Dict[str, str]:
    """Name -> module it is defined in, for all names that `relative` offers."""
    own = {name: relative for name in MODULES.get(relative, PARTIAL.get(relative, "")).split()}
    if relative in _GATHERING:
        for module, names in MODULES.items():
            if module.startswith(relative + "."):
                own.update({name: module for name in names.split() if name[0].isupper()})
    return own


def lookup(relative: str, name: str):
    """The placeholder `name` of a module below glaive. AttributeError when the tables do not have it."""
    home = _names_of(relative).get(name)
    full = f"{_PACKAGE}.{relative}"
    if home is None:
        raise AttributeError(f"module {full!r} has no attribute {name!r}")
    if home != relative:
        return getattr(importlib.import_module(f"{_PACKAGE}.{home}"), name)
    return placeholder(name, full)


def _is_package(relative: str) -> bool:
    return any(module.startswith(relative + ".") for module in MODULES)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes the modules of the tables that have no file."""

    def find_spec(self, fullname: str, path=None, target=None) -> Optional[importlib.machinery.ModuleSpec]:
        package, _, relative = fullname.partition(".")
        if package != _PACKAGE or not relative or not (relative in MODULES or _is_package(relative)):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=_is_package(relative))

    def create_module(self, spec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        relative = module.__name__[len(_PACKAGE) + 1 :]
        names = _names_of(relative)
        module.__doc__ = "Not supported yet: the names exist and raise NotImplementedError when they are used."
        module.__all__ = sorted(name for name in names if not name.startswith("_"))  # type: ignore[attr-defined]

        def getattribute(name: str):
            value = lookup(relative, name)
            setattr(module, name, value)
            return value

        module.__getattr__ = getattribute  # type: ignore[attr-defined]
        module.__dir__ = lambda: sorted({*vars(module), *names})  # type: ignore[attr-defined]


def install() -> None:
    """Lets the modules of the tables be imported; modules that have a file are found first."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def missing_names(module: str):
    """The `__getattr__` of a module that is built in part: placeholders for the names of `PARTIAL`."""
    relative = module[len(_PACKAGE) + 1 :]
    wanted = frozenset(PARTIAL[relative].split())
    made: Dict[str, object] = {}

    def getattribute(name: str):
        if name not in wanted:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name not in made:
            made[name] = placeholder(name, module)
        return made[name]

    return getattribute
