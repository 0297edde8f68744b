import sys
from subprocess import run

import pytest

_PROGRAM = """
import resource
from app.web.open_files import allow_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(allow_open_files(1000, reserved=100), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [(2_000, 2_000, "1000 2000 2000"), (256, 2_000, "1000 1100 2000"), (256, 512, "412 512 512"), (50, 80, "1 80 80")],
)
def test_the_limit_of_open_files_is_raised_as_needed(soft: int, hard: int, expected: str) -> None:
    program = _PROGRAM.format(soft=soft, hard=hard)
    answer = run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert answer.stdout.strip() == expected
