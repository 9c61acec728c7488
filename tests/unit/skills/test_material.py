"""A model without tools is shown the files that the call is about."""

from __future__ import annotations

from bailiwick.skills.material import expanded, imported, mentioned

FILES = (
    "src/shop/cart.py", "src/shop/__init__.py", "src/shop/price.py", "lib/price.js", "tests/test_cart.py", "a/util.py",
    "b/util.py", "README.md", "web/cart.test.ts", "web/cart.ts", "web/api/index.js",
)  # fmt: skip


def test_files_and_folders_are_named() -> None:
    """What is neither is told apart."""
    assert expanded(["README.md", "a", "nothing"], FILES) == (["README.md", "a/util.py"], ["nothing"])
    assert expanded(["."], FILES)[0] == list(FILES)


def test_a_trace_names_its_files() -> None:
    """By their path, also below another root, and only where that is unmistakable."""
    trace = 'File "/home/me/src/shop/cart.py", line 3\n  at web/cart.ts:4:2\nutil.py:1\n./README.md'
    assert mentioned(trace, FILES, "/home/me") == ["src/shop/cart.py", "web/cart.ts", "README.md"]


def test_code_is_meant_by_its_bare_name_where_there_is_just_one() -> None:
    """`cart` and `price` are several files, `index` is one."""
    assert mentioned("add a function to the index of the cart", FILES) == ["web/api/index.js"]


def test_a_test_shows_what_it_imports() -> None:
    """Packages below src, and modules of a package."""
    source = b"import os\nfrom shop import cart\nfrom shop.price import parse\n"
    assert imported(source, "tests/test_cart.py", FILES) == [
        "src/shop/__init__.py",
        "src/shop/cart.py",
        "src/shop/price.py",
    ]
    assert imported(b"def (", "tests/test_cart.py", FILES) == []


def test_relative_imports_count_from_the_file() -> None:
    """In Python from its package, in JavaScript from its folder."""
    assert imported(b"from .price import x\nfrom . import cart\n", "src/shop/test_x.py", FILES) == [
        "src/shop/price.py",
        "src/shop/__init__.py",
        "src/shop/cart.py",
    ]
    script = b"import { Cart } from './cart.js';\nconst api = require('./api');\nimport x from 'lodash';\n"
    assert imported(script, "web/cart.test.ts", FILES) == ["web/cart.ts", "web/api/index.js"]


def test_a_go_test_shows_its_package() -> None:
    """All files of a folder are one package."""
    files = ("calc/calc.go", "calc/calc_test.go", "other/x.go")
    assert imported(b"package calc", "calc/calc_test.go", files) == ["calc/calc.go", "calc/calc_test.go"]
