"""Makes the failures of the shipped suites as readable as those of ordinary tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("bailiwick.testing.store_conformance", "bailiwick.testing.backend_conformance")
pytest.register_assert_rewrite("bailiwick.testing.sandbox_conformance")
