# SPDX-License-Identifier: Apache-2.0
# cmake -D OUT=SOURCE.cpp -D FILES=a;b -P LockstepEmbed.cmake: a source with the content of files, which
# lockstep::launcher::embedded_file() gives by their names.
set(arrays "")
set(cases "")
set(number 0)
foreach(file ${FILES})
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  get_filename_component(name ${file} NAME)
  file(SIZE ${file} size)
  string(APPEND arrays "const unsigned char file_${number}[] = {${bytes}0};\n")
  string(APPEND cases "  if (name == \"${name}\") return {reinterpret_cast<const char*>(file_${number}), ${size}};\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "#include \"launcher/report/embedded_files.h\"

namespace lockstep::launcher {

namespace {

${arrays}
}  // namespace

std::string_view embedded_file(std::string_view name) {
${cases}  return {};
}

}  // namespace lockstep::launcher
")
