"""What the extra ``run`` installs, and a line for whoever lacks it."""

from importlib.util import find_spec

from deep20ray.errors import UsageError


def needs_run_extra() -> None:
    """Refuses where what plays isn't installed.

    Raises:
        UsageError: naming what is missing.
    """
    missing = [name for name in ("ray", "httpx", "httpx_aiohttp", "psutil", "genai_prices") if find_spec(name) is None]
    if missing:
        raise UsageError(f"{missing[0]} is not installed here, and this needs it: pip install 'deep20ray[run]'")
