"""Adds the digests of all images to docker-compose.yml and Dockerfile. Needs Docker and the images' registry.

A tag can be moved to another image; a digest cannot. If a digest cannot be read, no file is changed.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = ("docker-compose.yml", "Dockerfile")
IMAGE = re.compile(r"^(?P<before>\s*image: |FROM )(?P<tag>[\w./-]+:[\w.-]+)(?:@sha256:[0-9a-f]{64})?", re.MULTILINE)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def read_digest(tag: str) -> str:
    """Return the digest of a tag in its registry. Raises OSError or SubprocessError if it cannot be read."""
    command = ["docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", tag]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    digest = DIGEST.search(done.stdout)
    if digest is None:
        raise OSError("the answer contains no digest")
    return digest[0]


def main(root: Path) -> int:
    """Write the digests, or say in one line why not. Returns the exit code."""
    texts = {root / name: (root / name).read_text(encoding="utf-8") for name in FILES}
    tags = {found["tag"] for text in texts.values() for found in IMAGE.finditer(text)}
    digests = {}
    for tag in sorted(tags):
        try:
            digests[tag] = read_digest(tag)
        except (OSError, subprocess.SubprocessError) as error:
            sys.stderr.write(f"pin-images: nothing is changed: no digest of {tag} ({type(error).__name__})\n")
            return 1
    for path, text in texts.items():
        pinned = IMAGE.sub(lambda found: f"{found['before']}{found['tag']}@{digests[found['tag']]}", text)
        path.write_text(pinned, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
