"""A home and a project for locum, and one way to run it there."""

import json
import os
import pathlib
import subprocess
import tempfile

# Far beyond what a busy machine needs.
PATIENCE_SECONDS = 300


class Home:
    """A place of its own for one run; gone at the end."""

    def __init__(self, locum, settings=""):
        self.locum = str(pathlib.Path(locum).resolve())
        self.folder = tempfile.TemporaryDirectory(prefix="locum-foreign-")
        root = pathlib.Path(self.folder.name)
        (root / "home" / "config").mkdir(parents=True)
        (root / "home" / "config" / "config.toml").write_text(settings)
        self.project = root / "project"
        (self.project / ".git").mkdir(parents=True)
        (self.project / "notes.txt").write_text("The answer is 42.\n")
        self.home = root / "home"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, task, model, variables, agent="explore", flags=()):
        """Asks an agent, one that can read if no other is named, and returns locum's answer."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LOCUM_HOME": str(self.home), **variables}
        command = [self.locum, *flags, "run", agent, task, "--model", model, "--json"]
        done = subprocess.run(
            command, cwd=self.project, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
        assert done.stdout, f"locum said nothing: {done.stderr}"
        return json.loads(done.stdout)
