"""Names that exist only to say that they are not built yet."""

from .._glaive import NotSupportedError


def refusal(what):
    """The error for a feature that is not there yet."""
    return NotSupportedError(f"{what} is not supported yet by glaive")


def refuse_arguments(function, arguments):
    """Raises when one of `arguments` (name -> value) is given, that is, neither None nor False."""
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise refusal(f"the argument {name} of {function}")


def _refusing(qualified):
    def call(self, *args, **kwargs):
        raise refusal(qualified)

    call.__name__ = qualified.rpartition(".")[2]
    call.__qualname__ = qualified
    call.__doc__ = "Not supported yet: raises NotImplementedError."
    return call


def not_built(methods=(), properties=()):
    """Class decorator: methods and properties of these names that raise NotImplementedError naming themselves."""

    def decorate(cls):
        for name in methods:
            setattr(cls, name, _refusing(f"{cls.__name__}.{name}"))
        for name in properties:
            setattr(cls, name, property(_refusing(f"{cls.__name__}.{name}")))
        return cls

    return decorate
