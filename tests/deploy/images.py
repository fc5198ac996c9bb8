"""The image, really built and run, without a registry and without a container engine.

    with built(folder) as image, running(image, "serve", env) as box:
        box.run("herdgate", "status") ...

The base is Debian's Python by debootstrap, committed under the name that gateway/Dockerfile asks for; buildah builds on
it. A box has processes, mounts and a network of its own (unshare), the image's command as PID 1 with the image's user
and environment, its root read-only, and /run/herdgate and /tmp in memory: what `docker run --read-only --tmpfs` makes.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers import ROOT, poll

__all__ = ["Box", "Image", "built", "running"]

BASE = "docker.io/library/python:3.11-slim-bookworm"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
BUILD_S = 1_200.0

# In its own mounts: the root read-only, with what a container is given; then the command, as PID 1, in its place.
INSIDE = """
set -e
mount --bind "$ROOT" "$ROOT"
mount -o remount,ro,bind "$ROOT"
mount -t proc proc "$ROOT/proc"
mount -t tmpfs -o uid=10001,gid=10001,size=1m tmpfs "$ROOT/run/herdgate"
mount -t tmpfs -o size=16m tmpfs "$ROOT/tmp"
ip link set lo up
exec chroot --userspec="$USERSPEC" "$ROOT" /usr/bin/env -i -C "$FOLDER" "$@"
"""


@dataclass(frozen=True)
class Image:
    """A built image.

    Attributes:
        root: its files.
        config: its command, user, environment and health check, as OCI names them.
    """

    root: Path
    config: Mapping[str, Any]


@dataclass(frozen=True)
class Box:
    """A running container.

    Attributes:
        process: of unshare; it ends with PID 1, with its exit code.
        log_file: what it says.
    """

    image: Image
    process: subprocess.Popen[bytes]
    log_file: Path
    environ: Mapping[str, str]

    @property
    def pid(self) -> int:
        """Its PID 1, as it is called outside."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def run(self, *words: str, root: bool = True) -> subprocess.CompletedProcess[str]:
        """A command beside PID 1, as the image's user.

        Args:
            root: of the image; False: a program of this machine, in the box' network.
        """
        enter = ["nsenter", "--target", str(self.pid), "--net"]
        if root:
            user = self.image.config["User"].partition(":")[0]
            enter += ["--pid", "--mount", "--root", "--wd", f"--setuid={user}", f"--setgid={user}"]
        environ = [f"{name}={value}" for name, value in self.environ.items()] if root else []
        env = ["/usr/bin/env", "-i", *environ] if root else []
        return subprocess.run([*enter, *env, *words], capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)

    def log(self) -> str:
        """What it has said so far."""
        return self.log_file.read_text()


@contextmanager
def built(folder: Path) -> Iterator[Image]:
    """Build it in a folder that is emptied again."""
    tool = ["buildah", "--storage-driver", "vfs", "--root", str(folder / "store"), "--runroot", str(folder / "run")]

    def buildah(*words: str) -> str:
        done = subprocess.run([*tool, *words], capture_output=True, text=True, timeout=BUILD_S, cwd=ROOT, check=False)
        assert done.returncode == 0, done.stderr[-4_000:]
        return done.stdout.strip()

    base = folder / "base"
    packages = "--include=python3,python3-venv,ca-certificates"
    debootstrap = ["debootstrap", "--variant=minbase", packages, "bookworm", str(base)]
    subprocess.run(debootstrap, check=True, stdout=subprocess.DEVNULL, timeout=BUILD_S)
    try:
        scratch = buildah("from", "scratch")
        buildah("add", "--quiet", scratch, str(base), "/")
        buildah("commit", "--quiet", "--rm", scratch, BASE)
        (folder / "pip.conf").write_text(f"[global]\ncert = {CERTIFICATES}\n")
        files = [f"--volume={folder}/pip.conf:/etc/pip.conf:ro", f"--volume={CERTIFICATES}:{CERTIFICATES}:ro"]
        how = ["--isolation", "chroot", "--pull-never", "--format", "docker", "--tag", "herdgate"]
        buildah("bud", "--quiet", *how, *files, "--file", "gateway/Dockerfile", ".")
        config = json.loads(buildah("inspect", "--type", "image", "herdgate"))["Docker"]["config"]
        root = buildah("mount", buildah("from", "--pull-never", "herdgate"))
        yield Image(Path(root), config)
    finally:
        with suppress(AssertionError):
            buildah("umount", "--all")
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(
    image: Image, log_file: Path, *command: str, environ: Mapping[str, str] | None = None, beside: Box | None = None
) -> Iterator[Box]:
    """Run it with this command, none: the image's, and these variables.

    Args:
        beside: in the network of this one; None: in one of its own.
    """
    told = dict(each.split("=", 1) for each in image.config["Env"]) | dict(environ or {})
    words = [*image.config["Entrypoint"], *(command or image.config["Cmd"])]
    inside = {
        "ROOT": str(image.root),
        "USERSPEC": image.config["User"],
        "FOLDER": image.config["WorkingDir"],
        "PATH": os.environ["PATH"],
    }
    network = ["nsenter", "--target", str(beside.pid), "--net"] if beside else ["unshare", "--net"]
    unshare = [*network, "unshare", "--pid", "--fork", "--kill-child", "--mount", "bash", "-c", INSIDE, "inside"]
    variables = [f"{name}={value}" for name, value in told.items()]
    with log_file.open("wb") as log:
        process = subprocess.Popen([*unshare, *variables, *words], stdout=log, stderr=log, env=inside)
    box = Box(image, process, log_file, told)
    try:
        poll(lambda: process.poll() is not None or box.pid > 0, "PID 1 is there", within_s=10)
        yield box
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(10)
