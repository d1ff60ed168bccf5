"""`make release` writes the version and the changelog, and builds and tags what a server of that version runs."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.code.source_files import PACKAGES, ROOT

IDENTITY = {
    f"GIT_{role}_{field}": f"{role.lower()}@example.com"
    for role in ("AUTHOR", "COMMITTER")
    for field in ("NAME", "EMAIL")
}
BUILDER = """#!/bin/sh
if [ "$1" = info ]; then echo "cannot connect to the daemon" >&2; exit {info}; fi
echo "$@" >>{log}
test -f deploy/Dockerfile && grep -q '^version = "1.2.0"$' pyproject.toml && exit {code}
"""
PACKER = """#!/bin/sh
echo "$@" | cut -d " " -f 1 >>{log}
[ "$1" = pack ] || exit 0
grep '"version": "1.2.0"' package.json package-lock.json | wc -l >>{log}
echo packed >"$4/parley-client-1.2.0.tgz"
"""
NOT_PACKAGED = {".md", ".png"}


def run(*arguments: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **IDENTITY, **env}  # noqa: TID251 - it is handed on
    return subprocess.run(arguments, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


class Clone:
    """A clone of this repository, in which releases are made by the code of this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self.tools = folder / "tools"
        self.tools.mkdir()
        self.packed = self._put_packer()
        done = run("git", "clone", "--quiet", "--no-tags", ROOT, self.folder, cwd=folder)
        if done.returncode:
            pytest.skip("this is no clone of a repository")

    def git(self, *arguments: str) -> str:
        done = run("git", *arguments, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def release(self, *arguments: str) -> tuple[int, str]:
        """Make a release. Only the image builders in `tools` are found."""
        path = f"{self.tools}:{Path(shutil.which('git') or '').parent}"
        done = run(sys.executable, ROOT / "deploy" / "release.py", *arguments, cwd=self.folder, PATH=path)
        return done.returncode, done.stdout + done.stderr

    def commit(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        self.git("add", name)
        self.git("commit", "--quiet", "--message", "Change a file")

    def put_builder(self, *, code: int, info: int = 0) -> Path:
        log, builder = self.tools / "log", self.tools / "docker"
        builder.write_text(BUILDER.format(log=log, code=code, info=info))
        builder.chmod(0o755)
        return log

    def _put_packer(self) -> Path:
        """Put a program in place of npm, because npm would fetch the compiler."""
        log = self.tools / "npm.log"
        for name, text in (("npm", PACKER.format(log=log)), ("node", "#!/bin/sh\n")):
            (self.tools / name).write_text(text)
            (self.tools / name).chmod(0o755)
        return log


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_release_is_built_from_what_is_committed_and_is_tagged_with_its_changes(
    clone: Clone, tmp_path: Path
) -> None:
    changelog = (clone.folder / "CHANGELOG.md").read_text()
    clone.commit("CHANGELOG.md", changelog.replace("## Unreleased\n", "## Unreleased\n\n- A change.\n", 1))
    (clone.folder / "build" / "lib" / "app").mkdir(parents=True)
    (clone.folder / "build" / "lib" / "app" / "stale.py").touch()
    log = clone.put_builder(code=0)

    code, output = clone.release("1.2.0")
    assert code == 0, output
    assert clone.packed.read_text().split() == ["ci", "pack", "3"]
    assert re.search(r"^image: parley:1\.2\.0$", output, re.MULTILINE)
    assert log.read_text() == "build --file deploy/Dockerfile --tag parley:1.2.0 .\n"
    assert clone.git("status", "--porcelain") == ""
    assert clone.git("log", "-1", "--format=%s").strip() == "Release 1.2.0"
    migrations = sorted((ROOT / "storage" / "postgres" / "migrations").glob("*.sql"))
    message = clone.git("tag", "--list", "v1.2.0", "--format=%(contents)")
    assert message.startswith("Parley 1.2.0\n\n## 1.2.0 (20")
    assert f"from `{migrations[0].stem}` to `" in message
    assert "- A change." in message
    assert (clone.folder / "CHANGELOG.md").read_text().count(message.partition("\n\n")[2].strip()) == 1
    chart = yaml.safe_load((clone.folder / "deploy" / "helm" / "parley" / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == ("1.2.0", "1.2.0")

    folder = clone.folder / "build" / "release" / "1.2.0"
    assert sorted(path.name for path in folder.glob("[!.]*")) == [
        "parley-1.2.0-py3-none-any.whl",
        "parley-client-1.2.0.tgz",
        "parley_client-1.2.0-py3-none-any.whl",
    ]
    for client in folder.glob("parley*client*"):
        assert f"client: build/release/1.2.0/{client.name}\n" in output
    wheel = folder / "parley-1.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as files:
        files.extractall(tmp_path / "installed")
        packed = {name for name in files.namelist() if not name.startswith("parley-")}
    tracked = clone.git("ls-files", *PACKAGES).split()
    assert packed == {name for name in tracked if Path(name).suffix not in NOT_PACKAGED}
    done = run(sys.executable, "-m", "app", "--version", cwd=tmp_path, PYTHONPATH=str(tmp_path / "installed"))
    assert (done.returncode, done.stdout) == (0, "parley 1.2.0\n")

    assert clone.release("1.3.0") == (1, "release: CHANGELOG.md has nothing under ## Unreleased\n")
    released = (clone.folder / "CHANGELOG.md").read_text()
    clone.commit("CHANGELOG.md", released.replace("\nNothing yet.\n", "\n- Another change.\n", 1))
    clone.commit("storage/postgres/migrations/9998_one.sql", "select 1;\n")
    assert clone.release("1.2.0") == (1, "release: VERSION must be higher than 1.2.0\n")
    code, notes = clone.release("1.10.0", "--notes")
    assert code == 0
    assert re.fullmatch(
        r"## 1\.10\.0 \(20\d\d-\d\d-\d\d\)\n\nMigrations: `9998_one`\.\n\n- Another change\.\n", notes
    )


def test_a_release_that_cannot_be_made_changes_nothing(clone: Clone) -> None:
    changelog = clone.folder / "CHANGELOG.md"
    if "\nNothing yet.\n" in changelog.read_text():
        clone.commit("CHANGELOG.md", changelog.read_text().replace("\nNothing yet.\n", "\n- A change.\n", 1))
    commit = clone.git("rev-parse", "HEAD")
    assert clone.release("1.2")[1] == "release: VERSION must be three numbers, such as 1.2.0\n"
    (clone.folder / "notes.txt").touch()
    assert clone.release("1.2.0")[1].startswith("release: there are changes that are not committed")
    (clone.folder / "notes.txt").unlink()
    clone.put_builder(code=3)
    code, output = clone.release("1.2.0")
    assert (code, output) == (1, "release: docker build failed:\n\n")
    assert clone.git("status", "--porcelain") == clone.git("tag", "--list") == ""
    assert clone.git("rev-parse", "HEAD") == commit


def test_the_image_has_the_version_of_the_project(tmp_path: Path) -> None:
    """The files that the image copies are enough to know the version, although the package is not installed."""
    for line in (ROOT / "deploy" / "Dockerfile").read_text().splitlines():
        match line.split():
            case ["COPY", source, target] if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, tmp_path / target, ignore=shutil.ignore_patterns("__pycache__"))
            case ["COPY", source, _]:
                shutil.copy(ROOT / source, tmp_path)
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "parley" / "Chart.yaml").read_text())
    assert stated is not None
    assert chart["appVersion"] == stated[1]
    missing = "import importlib.metadata as m, runpy, sys; m.version = None; sys.argv = ['app', '--version']"
    done = run(sys.executable, "-c", f"{missing}; runpy.run_module('app', run_name='__main__')", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"parley {stated[1]}\n")


def test_without_a_daemon_the_release_has_no_image(clone: Clone) -> None:
    changelog = clone.folder / "CHANGELOG.md"
    clone.commit(
        "CHANGELOG.md", changelog.read_text().replace("## Unreleased\n", "## Unreleased\n\n- A change.\n", 1)
    )
    log = clone.put_builder(code=0, info=1)
    code, output = clone.release("1.2.0")
    assert code == 0, output
    assert "image: not built: docker cannot be used (cannot connect to the daemon): start it" in output
    assert clone.git("tag", "--list") == "v1.2.0\n"
    assert not log.exists()
