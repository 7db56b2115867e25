"""The zygote's process (zygote.py), for the life of a context."""

from __future__ import annotations

import shutil
import subprocess
import sys

from cascade_runtime.agent.run_folder import ZYGOTE, make_run_folder
from cascade_runtime.vocabulary.errors import BadUsage


class Zygote:
    """A zygote process for the life of this context; give ``path`` to ``make_config``."""

    def __init__(self) -> None:
        self.path = make_run_folder() / ZYGOTE
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Zygote:
        """Start it and wait until it has imported torch.

        It and its ranks are a session of their own: Ctrl-C reaches ranks through their agents.
        """
        command = [sys.executable, "-m", "cascade_runtime.zygote", str(self.path)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
        except BaseException:  # Ctrl-C: nobody waits until torch is imported
            if self._process is not None:  # else it ends with us
                self._process.kill()
            self.__exit__()
            raise
        if line != b"ready\n":
            self.__exit__()
            raise BadUsage(
                f"torch could not be imported (exit code {self._process.returncode})",
                where=sys.executable,
                hint="install it with: pip install 'cascade-timelines[demo]'",
            )
        return self

    def __exit__(self, *ignored: object) -> None:
        """Stop it."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process.wait()
        shutil.rmtree(self.path.parent, ignore_errors=True)
