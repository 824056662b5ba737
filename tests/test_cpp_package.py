"""`cmake --install BUILD --component cpp`, and a program of somebody else that uses the result with find_package(Glaive)."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(Glaive 0.1 REQUIRED)
add_executable(consumer main.cc)
target_link_libraries(consumer PRIVATE Glaive::glaive)
"""

# Nothing here but the public headers and Arrow's.
MAIN = r"""
#include <iostream>

#include <arrow/api.h>
#include <glaive/glaive.h>

arrow::Status Run(const std::string& uri) {
  arrow::Int64Builder ids;
  arrow::FixedSizeListBuilder vectors(arrow::default_memory_pool(), std::make_shared<arrow::FloatBuilder>(), 2);
  auto& items = static_cast<arrow::FloatBuilder&>(*vectors.value_builder());
  for (int i = 0; i < 100; ++i) {
    ARROW_RETURN_NOT_OK(ids.Append(i));
    ARROW_RETURN_NOT_OK(vectors.Append());
    ARROW_RETURN_NOT_OK(items.AppendValues({static_cast<float>(i), 1.0f}));
  }
  ARROW_ASSIGN_OR_RAISE(auto id, ids.Finish());
  ARROW_ASSIGN_OR_RAISE(auto vector, vectors.Finish());
  auto schema = arrow::schema({arrow::field("id", id->type()), arrow::field("vector", vector->type())});
  ARROW_ASSIGN_OR_RAISE(auto db, glaive::Connect(uri));
  ARROW_ASSIGN_OR_RAISE(auto table, db.CreateTable("t", arrow::Table::Make(schema, {id, vector})));
  ARROW_ASSIGN_OR_RAISE(auto rows, table.CountRows("id >= 90"));
  ARROW_ASSIGN_OR_RAISE(auto hits, table.Search({42.2f, 1.0f}).Where("id % 2 = 0 OR id < 50").Limit(1).ToTable());
  auto best = hits->GetColumnByName("id")->GetScalar(0).ValueOrDie()->ToString();
  std::cout << rows << " " << best << " " << table.TakeWarnings().size() << "\n";
  auto missing = db.OpenTable("u");
  std::cout << (glaive::KindOf(missing.status()) == glaive::ErrorKind::kNotFound) << "\n";
  return arrow::Status::OK();
}

int main(int, char** argv) {
  auto status = Run(argv[1]);
  if (!status.ok()) std::cerr << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}
"""


def run(*command, **options):
    done = subprocess.run(
        [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}"
    return done.stdout


def readme_block(language, start=""):
    """The first such block of the README that starts so."""
    text = (ROOT / "README.md").read_text()
    return re.search(rf"^```{language}\n({re.escape(start)}.*?)^```$", text, re.M | re.S)[1]


def check_readme(prefix, folder, generator):
    """The README's first programs: the one in Python makes a table, the one in C++ searches it."""
    folder.mkdir()
    here = lambda program: program.replace("/tmp/glaive-first", str(folder / "db"))  # noqa: E731
    out = run(sys.executable, "-c", here(readme_block("python")), env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert out.endswith("3 rows in version 3\n4 rows in the version before\n")
    (folder / "first.cc").write_text(here(readme_block("cpp")))
    (folder / "CMakeLists.txt").write_text(readme_block("cmake"))
    out = folder / "out"
    run(
        "cmake", "-S", folder, "-B", out, *generator, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DGlaive_PYTHON={sys.executable}",
        "-DCMAKE_BUILD_TYPE=Debug",
    )  # fmt: skip
    run("cmake", "--build", out)
    assert "ant" in run(out / "first")


@pytest.mark.skipif(not (BUILD / "CMakeCache.txt").exists(), reason="needs build/release (cmake --preset release)")
def test_a_consumer_builds_and_runs(tmp_path):
    prefix, project, build = tmp_path / "prefix", tmp_path / "project", tmp_path / "build"
    run("cmake", "--install", BUILD, "--component", "cpp", "--prefix", prefix)
    project.mkdir()
    (project / "CMakeLists.txt").write_text(PROJECT)
    (project / "main.cc").write_text(MAIN)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run(
        "cmake", "-S", project, "-B", build, *generator, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DGlaive_PYTHON={sys.executable}",
        "-DCMAKE_BUILD_TYPE=Debug",
    )  # fmt: skip
    run("cmake", "--build", build)
    # Nothing of the source tree is needed any more.
    out = run(build / "consumer", tmp_path / "db", env={k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"})
    assert out.split() == ["10", "42", "0", "1"]
    check_readme(prefix, tmp_path / "readme", generator)
    assert not list(prefix.glob("**/*.proto")) and (prefix / "include" / "glaive" / "glaive.h").exists()
