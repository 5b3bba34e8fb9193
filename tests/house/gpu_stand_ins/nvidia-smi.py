# SPDX-License-Identifier: Apache-2.0
import os
import sys

if os.environ.get("STAND_IN_SMI") == "fails":
    sys.exit("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver")
print("NVIDIA H200, 9.0, 580.159.03, 143771")
