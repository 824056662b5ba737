# Glaive under the name of the package whose API it has: `import lancedb`.
from glaive._alias import install as _install

_install(globals(), "glaive")
