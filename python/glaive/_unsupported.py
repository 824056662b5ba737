"""Names of the LanceDB API that are not built yet: they exist to say so."""

import functools
import inspect

from .exceptions import NotSupportedError


def refuse(what: str) -> NotSupportedError:
    """The error for a feature, named `what`, that is not there yet."""
    return NotSupportedError(f"{what} is not supported yet")


def _refusing(qualified: str, asynchronous: bool):
    if asynchronous:

        async def call(self, *args, **kwargs):
            raise refuse(qualified)
    else:

        def call(self, *args, **kwargs):
            raise refuse(qualified)

    call.__name__ = qualified.rpartition(".")[2]
    call.__qualname__ = qualified
    call.__doc__ = "Not supported yet: raises NotImplementedError."
    return call


def not_built(*names: str, asynchronous: bool = False):
    """Class decorator: gives the class methods of these names, each raising NotImplementedError that names it."""

    def decorate(cls):
        for name in names:
            if name not in cls.__dict__:
                setattr(cls, name, _refusing(f"{cls.__name__}.{name}", asynchronous))
        abstract = getattr(cls, "__abstractmethods__", None)
        if abstract:
            cls.__abstractmethods__ = frozenset(abstract) - set(names)
        return cls

    return decorate


def not_built_function(name: str):
    """A function that raises NotImplementedError naming itself."""

    def call(*args, **kwargs):
        raise refuse(name)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Not supported yet: raises NotImplementedError."
    return call


def declare(base: type, full: type) -> None:
    """Gives an abstract class the public methods of its full subclass that it lacks, each raising NotImplementedError that names it.

    Programs look methods up on the base class, and other subclasses of it need not have them all.
    """

    def declared(name, function):
        @functools.wraps(function)
        def call(self, *args, **kwargs):
            raise NotSupportedError(f"{type(self).__name__}.{name} is not supported")

        call.__qualname__ = f"{base.__name__}.{name}"
        return call

    for name in dir(full):
        if name.startswith("_") and name != "__getitems__" or hasattr(base, name):
            continue
        value = inspect.getattr_static(full, name)
        if inspect.isfunction(value):
            setattr(base, name, declared(name, value))
        elif isinstance(value, property):
            setattr(base, name, property(declared(name, value.fget), doc=value.__doc__))
