"""How fast the local embedding model is, and how much memory it takes.

    python -m bench.embeddings --locomo locomo10.json

The texts are the first messages of LoCoMo. They are embedded in this process, in calls of 64, by one thread; then some
of them one by one, as queries are. Memory is the largest resident set before the model is loaded, and at the end. It
includes the part of the weights that was used, which processes share.
"""

import argparse
import asyncio
import resource
import statistics
import time

from app.embeddings.configured import make_embedder
from app.kit.settings import Settings
from bench.locomo import add_locomo_option, read_locomo

TEXTS = 1_024
BATCH = 64
QUERIES = 50


async def measure(texts: list[str]) -> None:
    """Print the figures of the local model."""
    before = resident_mib()
    started_s = time.perf_counter()
    embedder = make_embedder(Settings(embeddings_base_url="local", _env_file=None))
    assert embedder is not None
    await embedder.embed(["warm"])
    print(f"load          {time.perf_counter() - started_s:8.2f} s")
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    for first in range(0, len(texts), BATCH):
        await embedder.embed(texts[first : first + BATCH])
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    print(f"texts         {len(texts):8,}   of {statistics.mean(map(len, texts)):.0f} characters")
    print(f"texts/s       {len(texts) / wall_s:8.0f}   {len(texts) / cpu_s:.0f} for each second of processor time")
    times_ms = []
    for text in texts[:QUERIES]:
        started_s = time.perf_counter()
        await embedder.embed([text])
        times_ms.append((time.perf_counter() - started_s) * 1_000)
    print(f"one text      {statistics.median(times_ms):8.1f} ms   median of {len(times_ms)}")
    long = " ".join(texts[:60])
    started_s = time.perf_counter()
    await embedder.embed([long])
    print(f"a long text   {(time.perf_counter() - started_s) * 1_000:8.0f} ms   of {len(long):,} characters")
    print(f"memory        {resident_mib():8.0f} MiB   {before:.0f} before the model was loaded")
    await embedder.aclose()


def resident_mib() -> float:
    """Return the largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description="The speed and memory of the local embedding model")
    add_locomo_option(parser)
    conversations = read_locomo(parser.parse_args().locomo)
    texts = [message.text for conversation in conversations for message in conversation.messages]
    asyncio.run(measure(texts[:TEXTS]))


if __name__ == "__main__":
    main()
