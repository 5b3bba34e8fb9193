# SPDX-License-Identifier: Apache-2.0
"""Open MPI's places, below STAND_IN_MPI."""
import os

for name, place in (("prefix", ""), ("bindir", "/bin"), ("libdir", "/lib/arch/openmpi/lib"),
                    ("pkglibdir", "/lib/arch/openmpi/lib/openmpi3"), ("pkgdatadir", "/share/openmpi")):
    print(f"path:{name}:{os.environ['STAND_IN_MPI']}{place}")
