#!/bin/sh
# Makes an environment with the server of llama-cpp-python, for tests/services/test_llama_cpp.py:
#
#     tests/setup_llama_cpp.sh .venv-llama-cpp
#
# The package comes as source. Of llama.cpp only the library is built, without the tools and the reading of
# images, and with little optimisation: 78 files and not 193, which is enough for tiny models.
# Needs g++, CMake, Ninja and python3 with venv (or the interpreter that PYTHON names).
set -eu
folder=$1
version=0.3.36
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${PYTHON:-python3}" -m venv "$folder"
pip="$folder/bin/python -m pip --disable-pip-version-check"
$pip download --quiet --no-deps --no-binary llama-cpp-python --dest "$scratch" "llama-cpp-python==$version"
tar -xf "$scratch"/llama_cpp_python-*.tar.gz -C "$scratch"
source="$scratch/llama_cpp_python-$version"

cmake -S "$source/vendor/llama.cpp" -B "$scratch/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
    -DCMAKE_BUILD_RPATH_USE_ORIGIN=ON -DBUILD_SHARED_LIBS=ON -DLLAMA_CURL=OFF -DLLAMA_BUILD_COMMON=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF
cmake --build "$scratch/build" --target llama

CMAKE_ARGS="-DLLAMA_BUILD=OFF -DLLAVA_BUILD=OFF" $pip install --quiet "$source[server]" gguf==0.19.0 safetensors==0.8.0
package=$("$folder/bin/python" -c 'from importlib.util import find_spec; print(find_spec("llama_cpp").submodule_search_locations[0])')
mkdir -p "$package/lib"
cp -P "$scratch"/build/bin/*.so* "$package/lib/"
"$folder/bin/python" -c 'import llama_cpp.server.app'
echo "HYPAC_TEST_LLAMA_CPP=$(cd "$folder" && pwd)/bin/python"
