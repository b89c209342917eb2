#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Asks a filter image about source addresses through libsieve's C interface: ask.py IMAGE ADDRESS..."""
import ctypes
import sys

SRC = 1  # SIEVE_FIELD_SRC of <sieve/key.h>


class Key(ctypes.Structure):
    _fields_ = [("word", ctypes.c_uint64 * 5)]


def load_library():
    lib = ctypes.CDLL("libsieve.so.1")
    error = ctypes.POINTER(ctypes.c_void_p)
    lib.libsieve_image_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), error]
    lib.libsieve_image_open.restype = ctypes.c_bool
    lib.libsieve_parse_key.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.POINTER(Key), error]
    lib.libsieve_parse_key.restype = ctypes.c_bool
    lib.libsieve_image_contains.argtypes = [ctypes.c_void_p, ctypes.POINTER(Key)]
    lib.libsieve_image_contains.restype = ctypes.c_bool
    lib.libsieve_error_message.argtypes = [ctypes.c_void_p]
    lib.libsieve_error_message.restype = ctypes.c_char_p
    lib.libsieve_image_free.argtypes = [ctypes.c_void_p]
    lib.libsieve_image_free.restype = None
    return lib


def checked(lib, function, *arguments):
    """Calls a function that may fail. If it fails, prints the library's message and ends the program."""
    error = ctypes.c_void_p()
    if not function(*arguments, ctypes.byref(error)):
        sys.exit("ask.py: " + lib.libsieve_error_message(error).decode())


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: ask.py IMAGE ADDRESS...")
    lib = load_library()
    image = ctypes.c_void_p()
    checked(lib, lib.libsieve_image_open, sys.argv[1].encode(), ctypes.byref(image))
    for address in sys.argv[2:]:
        key = Key()
        checked(lib, lib.libsieve_parse_key, address.encode(), SRC, ctypes.byref(key))
        present = lib.libsieve_image_contains(image, ctypes.byref(key))
        print(address, "present" if present else "absent")
    lib.libsieve_image_free(image)


if __name__ == "__main__":
    main()
