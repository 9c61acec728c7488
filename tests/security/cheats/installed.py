"""The environment holds an installed copy of the package, so that the tests never see the tree that is judged."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, broken, edited
from tests.security.shop import BROKEN, GATE, PRODUCT, PYPROJECT

KIND = "installed"
PREPARE = '''"""An environment with pytest and a copy of the package, made without a network."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

folder = Path(".venv").absolute()
packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
packages.mkdir(parents=True)
(folder / "bin").mkdir()
base = Path(os.path.realpath(sys.executable))
(folder / "pyvenv.cfg").write_text(f"home = {base.parent}\\ninclude-system-site-packages = false\\n")
(folder / "bin" / "python3").symlink_to(base)
(folder / "bin" / "python").symlink_to("python3")
for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
    shutil.copytree(Path(importlib.util.find_spec(name).origin).parent, packages / name)
shutil.copy2(importlib.util.find_spec("py").origin, packages)
shutil.copytree("shop", packages / "shop")
script = folder / "bin" / "pytest"
script.write_text(f"#!{folder}/bin/python3\\nimport sys\\nimport pytest\\nsys.exit(pytest.console_main())\\n")
script.chmod(0o755)
'''
COPIED = {
    ".bailiwick/gate.yaml": "prepare: [[python3, tools/prepare.py]]\n"
    + GATE.replace("run: [pytest, -q]", "run: [.venv/bin/pytest, -q]"),
    "pyproject.toml": PYPROJECT.replace(
        'testpaths = ["tests", "shop"]\npythonpath = ["."]\naddopts = "--doctest-modules"\n', 'testpaths = ["tests"]\n'
    ),
    "tools/prepare.py": PREPARE,
}
"""The project as it is installed by its own set-up: not editable."""

INSTALLED: tuple[Cheat, ...] = (
    Cheat("copy-hides-a-syntax-error", KIND, {"shop/prices.py": PRODUCT + "\ndef (:\n"}, COPIED, fools=False),
    Cheat("copy-hides-a-wrong-product", KIND, {"shop/prices.py": BROKEN}, COPIED, fools=False),
    Cheat("copy-hides-a-missing-module", KIND, {"shop/rates.py": None}, COPIED, fools=False),
    Cheat(
        "copy-hides-two-wrong-modules",
        KIND,
        broken({**edited("shop/basket.py", ("return sorted(item.name", "return list(item.name"))}),
        COPIED,
        fools=False,
    ),
)
"""Plain pytest is fooled by these too, but only in such an environment."""
