"""`make release VERSION=1.2.0`: writes the version and its section of the changelog, builds, commits and tags.

The server and its clients have the same version.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

_CHANGELOG = "CHANGELOG.md"
_LOCKED = (
    r'(?s)\A(?P<before>\{\n  "name": "parley-client",\n  )"version": "[^"]*"'
    r'(?P<between>,.*?\n    "": \{\n      "name": "parley-client",\n      )"version": "[^"]*"'
)
"""The two lines of the lock file that state the version of the package itself."""
_STATED = {
    "pyproject.toml": (r'^version = "[^"]*"$', 'version = "{}"'),
    "clients/python/pyproject.toml": (r'^version = "[^"]*"$', 'version = "{}"'),
    "clients/typescript/package.json": (r'^  "version": "[^"]*",$', '  "version": "{}",'),
    "clients/typescript/package-lock.json": (_LOCKED, '\\g<before>"version": "{0}"\\g<between>"version": "{0}"'),
    "deploy/helm/parley/Chart.yaml": (r'^version: \S+\nappVersion: "[^"]*"$', 'version: {0}\nappVersion: "{0}"'),
}
"""The files that state the version, with the pattern and the form of the lines that do."""
_WRITTEN = (_CHANGELOG, *_STATED)
_MIGRATIONS = "storage/postgres/migrations"
_OUT = Path("build/release")
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_UNRELEASED = "## Unreleased\n"
_NOTHING_YET = "\nNothing yet.\n"
_BEFORE_THE_FIRST = "There is no released version yet. The first one will contain the following.\n\n"
_IMAGE_BUILDERS = ("docker", "podman", "buildah")


class Refused(SystemExit):
    """The release cannot be made. Nothing was changed, or what was changed is as before."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"release: {reason}")


def release(version: str, *, today: date) -> None:
    """Make a release of the clone in the current folder. Raises `Refused`."""
    tag = f"v{version}"
    if _git("status", "--porcelain", "--untracked-files=normal"):
        raise Refused(
            "there are changes that are not committed, or files that git does not know: commit them first"
        )
    section, commit = section_of(version, today=today), _git("rev-parse", "HEAD")
    try:
        _write_files(version, section)
        _git("add", *_WRITTEN)
        with tempfile.TemporaryDirectory() as name:
            source = Path(name)
            # What is built contains no other files, and nothing of an earlier build.
            _git("checkout-index", "--all", f"--prefix={source}/")
            image = _build_image(source, version)
            out = _new_folder(_OUT / version)
            wheel = _build_wheel(source, out)
            clients = [_build_wheel(source / "clients/python", out), _pack_client(source, out)]
        _git("commit", "--quiet", "--message", f"Release {version}")
        _git("tag", "--annotate", "--cleanup=verbatim", "--message", f"Parley {version}\n\n{section}", tag)
    except BaseException:
        _git("reset", "--quiet", "--hard", commit)  # There were no other changes.
        raise
    packed = "".join(f"client: {client}\n" for client in clients)
    pushed = f"tag: {tag}; publish it: git push origin HEAD {tag}\n"
    sys.stdout.write(f"wheel: {wheel}\n{packed}image: {image}\n{pushed}")


def _check_version(version: str) -> None:
    """Check the form of the version, and that it is higher than that of every release."""
    if (found := _VERSION.fullmatch(version)) is None:
        raise Refused("VERSION must be three numbers, such as 1.2.0")
    released = [_VERSION.fullmatch(tag.removeprefix("v")) for tag in _git("tag", "--list", "v*").split()]
    latest = max((tuple(map(int, one.groups())) for one in released if one), default=None)
    if latest is not None and tuple(map(int, found.groups())) <= latest:
        raise Refused(f"VERSION must be higher than {'.'.join(map(str, latest))}")


def section_of(version: str, *, today: date) -> str:
    """Return the section of the changelog: what was under Unreleased, and the migrations since the last release.

    Raises `Refused` if there is nothing to release, or if `version` is not higher than that of the last release.
    """
    _check_version(version)
    text = Path(_CHANGELOG).read_text()
    if text.count(_UNRELEASED) != 1:
        raise Refused(f"{_CHANGELOG} must have one section {_UNRELEASED.strip()}")
    changes = text.partition(_UNRELEASED)[2].partition("\n## ")[0].strip()
    if changes in {"", _NOTHING_YET.strip()}:
        raise Refused(f"{_CHANGELOG} has nothing under {_UNRELEASED.strip()}")
    changes = f"{changes}\n".removeprefix(_BEFORE_THE_FIRST)
    return f"## {version} ({today.isoformat()})\n\n{_migrations()}\n\n{changes}"


def _migrations() -> str:
    """Return a sentence with the migrations since the last release, which `python -m app migrate` applies."""
    tags = _git("tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname").split()
    if tags:
        found = _git("diff", "--name-only", "--diff-filter=A", tags[0], "HEAD", "--", _MIGRATIONS).split()
    else:
        found = _git("ls-tree", "--name-only", "HEAD", f"{_MIGRATIONS}/").split()
    names = [f"`{Path(name).stem}`" for name in sorted(found) if name.endswith(".sql")]
    match names:
        case []:
            return "Migrations: none."
        case [one]:
            return f"Migrations: {one}."
        case _:
            return f"Migrations: {len(names)}, from {names[0]} to {names[-1]}."


def _write_files(version: str, section: str) -> None:
    for name, (pattern, form) in _STATED.items():
        text, found = re.subn(pattern, form.format(version), Path(name).read_text(), flags=re.MULTILINE)
        if found != 1:
            raise Refused(f"{name} must state one version")
        Path(name).write_text(text)
    changelog = Path(_CHANGELOG)
    before, _, rest = changelog.read_text().partition(_UNRELEASED)
    _, heading, earlier = rest.partition("\n## ")
    changelog.write_text(f"{before}{_UNRELEASED}{_NOTHING_YET}\n{section}{heading}{earlier}")


def _new_folder(out: Path) -> Path:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    return out


def _build_wheel(source: Path, out: Path) -> Path:
    """Build a wheel with the installed setuptools, which needs no network."""
    before = {*out.glob("*.whl")}
    uv = Path(sys.executable).parent / "uv"
    _run(uv, "build", "--quiet", "--wheel", "--offline", "--no-build-isolation", "--python", sys.executable,
         "--out-dir", out.absolute(), cwd=source)  # fmt: skip
    (built,) = {*out.glob("*.whl")} - before
    return built


def _pack_client(source: Path, out: Path) -> Path | str:
    """Build and pack the TypeScript client. Return its file, or why there is none."""
    if missing := [name for name in ("npm", "node") if shutil.which(name) is None]:
        return f"parley-client for npm is not packed: {missing[0]} is not installed"
    folder = source / "clients/typescript"
    _run("npm", "ci", "--silent", "--no-audit", "--no-fund", cwd=folder)
    _run("npm", "pack", "--silent", "--pack-destination", out.absolute(), cwd=folder)
    return next(out.glob("*.tgz"))


def _build_image(source: Path, version: str) -> str:
    """Build the image with the first builder that can be used. Return its name, or why there is none."""
    installed = list(filter(shutil.which, _IMAGE_BUILDERS))
    if not installed:
        return f"not built: none of {', '.join(_IMAGE_BUILDERS)} is installed"
    faults = {builder: _fault_of(builder) for builder in installed}
    builder = next((builder for builder, fault in faults.items() if not fault), None)
    if builder is None:
        causes = ", and ".join(f"{builder} cannot be used ({fault})" for builder, fault in faults.items())
        return f"not built: {causes}: start it, and build deploy/Dockerfile of the tag"
    _run(builder, "build", "--file", "deploy/Dockerfile", "--tag", f"parley:{version}", ".", cwd=source)
    return f"parley:{version}"


def _fault_of(builder: str) -> str:
    """Return why an installed builder cannot be used, for example because its daemon does not run."""
    done = subprocess.run([builder, "info"], capture_output=True, text=True, check=False)
    return (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1] if done.returncode else ""


def _git(*arguments: str) -> str:
    return _run("git", *arguments)


def _run(*arguments: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{arguments[0]} {arguments[1]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="make release VERSION=", description=__doc__)
    parser.add_argument("version")
    parser.add_argument(
        "--notes", action="store_true", help="print the section of the changelog, and change nothing"
    )
    given = parser.parse_args(arguments)
    today = datetime.now(UTC).date()
    if given.notes:
        sys.stdout.write(section_of(given.version, today=today))
    else:
        release(given.version, today=today)


if __name__ == "__main__":
    main()
