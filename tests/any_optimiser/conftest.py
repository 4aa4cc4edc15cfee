from importlib.util import find_spec

if find_spec("jax"):
    import jax

    jax.config.update("jax_enable_x64", True)
