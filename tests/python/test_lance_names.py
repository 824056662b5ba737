"""Names of the dataset-level package that a program may reach in any order."""

import subprocess
import sys


def test_dataset_stays_a_function_after_its_submodule_is_imported(tmp_path):
    """Importing the submodule `dataset` replaced the function of that name, so the second open failed."""
    program = f"""
import pyarrow as pa
import glaive.lance as lance
from glaive.lance.dataset import LanceDataset
lance.write_dataset(pa.table({{"a": [1, 2]}}), {str(tmp_path / "t")!r})
for _ in range(2):
    assert isinstance(lance.dataset({str(tmp_path / "t")!r}), LanceDataset)
import importlib
importlib.import_module("glaive.lance.dataset")
assert lance.dataset({str(tmp_path / "t")!r}).count_rows() == 2
"""
    subprocess.run([sys.executable, "-c", program], check=True)
