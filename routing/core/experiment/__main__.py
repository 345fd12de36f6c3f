"""``python -m routing.core.experiment FILE``."""

from __future__ import annotations

from routing.core.experiment.cli import main

raise SystemExit(main())
