"""What is deployed, as far as it can be checked without a cluster: schemas, pins, paths, and no secret anywhere."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import ray.autoscaler
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PIN = re.compile(r"^([a-z0-9._-]+)(?:\[[a-z,]+\])?==([^ ;]+)", re.MULTILINE)


def pins(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in PIN.findall(path.read_text()):
        found.setdefault(name, set()).add(version)
    return found


def job() -> Any:
    return yaml.safe_load((DEPLOY / "kuberay-rayjob.yaml").read_text())


def pods() -> list[Any]:
    cluster = job()["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"]["template"]["spec"], *(group["template"]["spec"] for group in cluster["workerGroupSpecs"])]


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_an_image_has_the_versions_that_the_tests_have_and_nothing_for_tests() -> None:
    deployed, tested = pins(DEPLOY / "constraints.txt"), pins(ROOT / "constraints.txt")
    assert deployed["ray"] == tested["ray"]
    assert {name: versions for name, versions in deployed.items() if name in tested and not versions <= tested[name]} == {}
    assert not {"pytest", "mypy", "ruff", "moto", "openai"} & deployed.keys()
    text = (DEPLOY / "constraints.txt").read_text()
    assert text.count("==") <= text.count("--hash=sha256:")


def test_every_requirement_of_a_node_is_pinned() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    (base,) = re.findall(r"^dependencies = \[(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    (run,) = re.findall(r"^run = \[(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    wanted = set(re.findall(r'^  "([a-z0-9-]+)', base + run, re.MULTILINE))
    assert len(wanted) > 12 and wanted <= pins(DEPLOY / "constraints.txt").keys()


def test_the_dockerfile_is_well_formed_small_and_without_root() -> None:
    known = {"FROM", "RUN", "COPY", "WORKDIR", "ENV", "USER", "CMD"}
    lines = instructions()
    assert {word for word, _ in lines} <= known
    stages = [index for index, (word, _) in enumerate(lines) if word == "FROM"]
    assert len(stages) == 2, "what builds is left behind"
    last = lines[stages[-1] :]
    assert ("USER", "1000:1000") in last and last[-1][0] == "CMD"
    assert all("-slim" in rest for word, rest in lines if word == "FROM")
    assert any("--require-hashes" in rest for word, rest in lines if word == "RUN")
    assert all("--no-cache-dir" in rest for word, rest in lines if word == "RUN" and "pip install" in rest)


def test_what_the_dockerfile_copies_exists_and_passes_its_ignore_file() -> None:
    allowed = {line.removeprefix("!") for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")]
    names = {name for each in copied for name in each}
    assert names == allowed
    assert all((ROOT / name).exists() for name in names)


def test_the_image_holds_every_package_of_the_distribution() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    (wheel,) = re.findall(r"targets\.wheel\]\npackages = \[(.*?)\]", project, re.DOTALL)
    copied = {rest.split()[0] for word, rest in instructions() if word == "COPY"}
    assert {path.split("/")[0] for path in re.findall(r'"([^"]+)"', wheel)} <= copied


def test_the_cluster_launchers_file_is_what_ray_expects() -> None:
    config = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text())
    schema = json.loads(Path(ray.autoscaler.__file__).with_name("ray-schema.json").read_text())
    jsonschema.validate(config, schema)
    assert config["max_workers"] == len(config["provider"]["worker_ips"])
    starts = [*config["head_start_ray_commands"], *config["worker_start_ray_commands"]]
    assert all("RAY_AUTH_MODE=token" in line for line in starts if " start " in line), "every node asks for the token"


def test_rays_schema_refuses_a_wrong_file() -> None:
    config = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text())
    schema = json.loads(Path(ray.autoscaler.__file__).with_name("ray-schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config | {"mounted_files": {}}, schema)


def test_the_rayjob_is_whole() -> None:
    document = job()
    assert (document["apiVersion"], document["kind"]) == ("ray.io/v1", "RayJob")
    cluster = document["spec"]["rayClusterSpec"]
    assert cluster["rayVersion"] in pins(ROOT / "constraints.txt")["ray"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0", "role actors go to the workers"
    for name in ("deep20ray resume", "deep20ray run", "--address auto"):
        assert name in document["spec"]["entrypoint"]


def test_every_pod_is_unprivileged_and_makes_its_keys_readable_by_itself_alone() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] == 1000
        (init,) = pod["initContainers"]
        assert "install -m 600" in init["command"][-1]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in (*pod["initContainers"], *pod["containers"]):
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert "env" not in container, "role actors inherit a node's environment: no key belongs there"
        (worker,) = pod["containers"]
        assert "secret" not in {mount["name"] for mount in worker["volumeMounts"]}


def test_no_secret_stands_in_what_is_deployed() -> None:
    for path in DEPLOY.iterdir():
        assert not re.search(r"(sk-|AKIA|BEGIN [A-Z ]*PRIVATE KEY|Bearer )", path.read_text()), path
