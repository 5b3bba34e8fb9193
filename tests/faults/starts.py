# SPDX-License-Identifier: Apache-2.0
"""What a run directory may hold when the injured training begins."""
import shutil


def fresh(shop):
    """Nothing."""
    shop.clear()


def interrupted(shop):
    """A checkpoint of step 2, a damaged one of step 4, and what processes that were killed have left behind."""
    kept = shop.folder / "interrupted"
    if not kept.exists():
        shop.clear()
        shop.train(settings=("checkpoint.keep=0",))
        newest = shop.run_dir / "checkpoints" / "step-00000004"
        content = newest.joinpath("state.pb").read_bytes()
        newest.joinpath("state.pb").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        # Process ids do not come so high.
        abandoned = shop.run_dir / "checkpoints" / f"step-00000004.tmp-{host_name()}.999999999.1.0"
        shutil.copytree(newest, abandoned)
        shop.run_dir.joinpath(f".{host_name()}.999999999.0.tmp").write_text("{")
        with open(shop.run_dir / "metrics.jsonl", "a") as metrics:
            metrics.write('{"step":4,"lo')
        shutil.copytree(shop.run_dir, kept)
    shop.clear()
    shutil.copytree(kept, shop.run_dir)


def host_name():
    with open("/proc/sys/kernel/hostname") as file:
        return file.read().strip()


STARTS = {"fresh": fresh, "interrupted": interrupted}
