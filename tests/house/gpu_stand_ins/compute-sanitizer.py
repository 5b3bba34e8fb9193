# SPDX-License-Identifier: Apache-2.0
import os
import sys

if os.environ.get("STAND_IN_FINDING") == sys.argv[sys.argv.index("--tool") + 1]:
    print("========= Error: Race reported between Write access at a.cuh:20 and Read access at a.cuh:24 [512 hazards]")
    sys.exit(int(sys.argv[sys.argv.index("--error-exitcode") + 1]))
