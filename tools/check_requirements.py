#!/usr/bin/env python3
"""Exit status 0 if the running Python has every package that a requirements file asks for."""

import importlib.metadata
import sys

from pip._vendor.packaging.requirements import Requirement


def missing(path):
    for line in open(path):
        line = line.split("#")[0].strip()
        if not line:
            continue
        requirement = Requirement(line)
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield line
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            yield line


sys.exit(1 if list(missing(sys.argv[1])) else 0)
