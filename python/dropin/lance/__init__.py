# Glaive's dataset-level API under the name of the package whose API it has: `import lance`.
from glaive._alias import install as _install

_install(globals(), "glaive.lance")
